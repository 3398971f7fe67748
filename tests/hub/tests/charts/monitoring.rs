//! What the chart gives to Prometheus and Grafana, if it is told to, is what its files say.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use hub_tests::helm::{Chart, Helm};
use libtest_mimic::Trial;
use serde_json::Value;

use crate::fixture::{Fixture, rendering};

const RULE: &str = "PrometheusRule";

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        rendering(fixture, "monitoring::the alerts are those of the file, with runbooks where they are kept", alerts),
        rendering(fixture, "monitoring::the dashboard is that of the file, where Grafana looks for it", dashboard),
    ]
}

fn alerts(helm: &Helm, _: PathBuf) -> Result<()> {
    let text = std::fs::read_to_string(Chart::Gateway.directory().join("files/alerts.yaml"))?;
    let kept = "https://docs.example.test/operations#";
    let file: Value = serde_saphyr::from_str(&text.replace("docs/operations.md#", kept))?;
    let values = "enabled=true,metrics.prometheusRule.labels.release=prometheus";
    let values = format!("{values},metrics.prometheusRule.runbooks={}", kept.trim_end_matches('#'));
    let objects = helm.template("door", "vela-system", &[format!("--set=metrics.prometheusRule.{values}")])?;
    let rule = objects.iter().find(|object| object["kind"] == RULE).context("there is none")?;
    ensure!(rule["spec"]["groups"] == file["groups"], "{}", rule["spec"]);
    ensure!(rule["metadata"]["labels"]["release"] == "prometheus", "{}", rule["metadata"]);
    let default = helm.template("door", "vela-system", &[])?;
    ensure!(!default.iter().any(|object| object["kind"] == RULE), "nobody asked for it");
    Ok(())
}

fn dashboard(helm: &Helm, _: PathBuf) -> Result<()> {
    let text = std::fs::read_to_string(Chart::Gateway.directory().join("files/dashboard.json"))?;
    let values = "metrics.dashboard.enabled=true,metrics.dashboard.namespace=monitoring";
    let objects = helm.template("door", "vela-system", &[format!("--set={values}")])?;
    let found = objects.iter().find(|object| !object["data"]["cluster-gateway.json"].is_null());
    let found = found.context("there is none")?;
    ensure!(found["data"]["cluster-gateway.json"].as_str().map(str::trim) == Some(text.trim()), "another one");
    let metadata = &found["metadata"];
    ensure!(metadata["namespace"] == "monitoring" && metadata["labels"]["grafana_dashboard"] == "1", "{metadata}");
    Ok(())
}
