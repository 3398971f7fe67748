//! The chart's optional objects for Prometheus and Grafana match its files.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::helm::{Chart, Helm};
use hub_tests::wait;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::fixture::{Fixture, Planes, on_hub, rendering};

const RULE: &str = "PrometheusRule";
/// What `kubectl get all` lists.
const ALL: &str = "pods,replicationcontrollers,services,daemonsets,deployments,replicasets,statefulsets,\
                   horizontalpodautoscalers,jobs,cronjobs";
/// Time for the hub to serve a newly defined kind.
const LIMIT: Duration = Duration::from_secs(30);

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        rendering(fixture, "monitoring::the alerts are those of the file, with runbooks where they are kept", alerts),
        rendering(fixture, "monitoring::objects that the hub does not know are named by their values", named),
        on_hub(
            fixture,
            "monitoring::a hub without their definitions is told so, and of runbooks once it has them",
            unknown,
        ),
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

/// The kinds of the Prometheus operator.
const OPERATOR: &str = "monitoring.coreos.com/v1";
/// Values, and the API that each needs.
const WANTED: [(Chart, &str, &str); 4] = [
    (Chart::Gateway, "metrics.serviceMonitor.enabled", OPERATOR),
    (Chart::Gateway, "metrics.prometheusRule.enabled", OPERATOR),
    (Chart::Gateway, "autoscaling.enabled", "metrics.k8s.io/v1beta1"),
    (Chart::Agent, "metrics.podMonitor.enabled", OPERATOR),
];
const AGENT: &str = "cluster=berlin,servers={hub.example.test:8091},credential.existingSecret=mine,";

/// helm gets its API versions here: none, as without a hub, or all of a hub's.
fn named(helm: &Helm, _: PathBuf) -> Result<()> {
    for (chart, value, api) in WANTED {
        let before = if chart == Chart::Agent { AGENT } else { "" };
        let render = |apis: &[&str]| {
            let apis = apis.iter().map(|api| format!("--api-versions={api}"));
            let words: Vec<_> = apis.chain([format!("--set={before}{value}=true")]).collect();
            helm.with(chart).template("door", "vela-system", &words)
        };
        render(&[]).with_context(|| format!("{value}, without a hub"))?;
        render(&["apiregistration.k8s.io/v1", api]).context(value)?;
        let refused = render(&["apiregistration.k8s.io/v1"]).err().with_context(|| format!("{value} is accepted"))?;
        let told = format!("{refused:#}");
        ensure!(told.contains(value) && told.contains(&format!("has no API {api}")), "{told}");
        ensure!(told.contains(". Install "), "{told}");
    }
    Ok(())
}

fn unknown(planes: &Planes) -> Result<()> {
    let namespace = "unmonitored";
    for value in ["metrics.serviceMonitor.enabled", "metrics.prometheusRule.enabled"] {
        let more = ["--create-namespace".to_owned(), format!("--set=apiService.create=false,{value}=true")];
        let refused = planes.helm.on_chart("install door", namespace, &more).err().context("installed")?;
        let told = format!("{refused:#}");
        ensure!(told.contains(value) && told.contains("this hub has no API"), "{told}");
    }
    let there = planes.hub.server.names(&format!("{ALL} -n {namespace}"))?;
    ensure!(there.is_empty(), "{there:?}");
    let member = planes.helm_of_member()?;
    let more = ["--create-namespace".to_owned(), format!("--set={AGENT}metrics.podMonitor.enabled=true")];
    let refused = member.on_chart("install door", namespace, &more).err().context("installed")?;
    ensure!(format!("{refused:#}").contains("this cluster has no API"), "{refused:#}");
    runbooks(planes)
}

/// With the kind's definition on the hub, the notes report runbooks that are not URLs.
fn runbooks(planes: &Planes) -> Result<()> {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let names = json!({"kind": RULE, "plural": "prometheusrules", "singular": "prometheusrule"});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "prometheusrules.monitoring.coreos.com"},
        "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced", "names": names, "versions": [version]}});
    planes.hub.server.apply(&[definition])?;
    let notes = |values: &str| -> Result<String> {
        let values = format!("--set=apiService.create=false,metrics.prometheusRule.{values}");
        let installed = planes.helm.on_chart("install door --dry-run=client", "unmonitored", &[values])?;
        Ok(installed.split_once("NOTES:\n").context("no notes")?.1.to_owned())
    };
    let told = wait::until("the definition to be known", LIMIT, || notes("enabled=true"))?;
    ensure!(told.contains("runbook_url is not a URL (docs/operations.md#…)"), "{told}");
    ensure!(told.contains("Set metrics.prometheusRule.runbooks"), "{told}");
    for values in ["enabled=false", "enabled=true,metrics.prometheusRule.runbooks=https://docs.example.test/operations"]
    {
        let told = notes(values)?;
        ensure!(!told.contains("runbook_url"), "{values}: {told}");
    }
    planes.hub.server.delete("customresourcedefinition prometheusrules.monitoring.coreos.com")
}

fn dashboard(helm: &Helm, _: PathBuf) -> Result<()> {
    let text = std::fs::read_to_string(Chart::Gateway.directory().join("files/dashboard.json"))?;
    let values = "metrics.dashboard.enabled=true,metrics.dashboard.namespace=monitoring";
    let objects = helm.template("door", "vela-system", &[format!("--set={values}")])?;
    let is_it = |object: &&Value| !object["data"]["cluster-gateway.json"].is_null();
    let found = objects.iter().find(is_it).context("there is none")?;
    ensure!(found["data"]["cluster-gateway.json"].as_str().map(str::trim) == Some(text.trim()), "another one");
    let metadata = &found["metadata"];
    ensure!(metadata["namespace"] == "monitoring" && metadata["labels"]["grafana_dashboard"] == "1", "{metadata}");
    let default = helm.template("door", "vela-system", &[])?;
    ensure!(!default.iter().any(|object| is_it(&object)), "nobody asked for it");
    Ok(())
}
