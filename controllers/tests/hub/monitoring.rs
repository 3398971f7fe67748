//! Monitoring for operators: the alerts' metrics exist, and report when credentials expire.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_tests::page;
use hub_tests::promtool;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::accounts;
use crate::fixture::{
    Fixture, Running, SOON, apply, kubeconfig_secret, member_kubeconfig, namespace, profile_kind, test, wait_gone,
    wait_secret,
};

/// Alerts on metrics that the program has whichever parts run; the tests of the parts evaluate the
/// others.
const ALERTS: [&str; 10] = [
    "ClusterGatewayControllersNoLeader",
    "ClusterGatewaySourceUnavailable",
    "ClusterGatewayRemovalsHeld",
    "ClusterGatewayNameTaken",
    "ClusterGatewayRegisteredCredentialExpires",
    "ClusterGatewayArgocdTokenOverdue",
    "ClusterGatewayDeliveryStuck",
    "ClusterGatewayDeliveryContested",
    "ClusterGatewayDeliveryForeign",
    "ClusterGatewayPlacementRemovalsHeld",
];
const PAGE: &str = include_str!("../../../docs/operations.md");
/// Sections whose commands need kinds that are not on the hub of the other alerts' tests.
const SECTIONS: [&str; 4] = [
    "### ClusterGatewayServiceAccountsFail",
    "### ClusterGatewayDeliveryStuck",
    "### ClusterGatewayProfilesFail",
    "### ClusterGatewayClustersLost",
];
const EXPIRY: &str = "cluster_gateway_controllers_credential_expiry_timestamp_seconds";

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "monitoring: the queries of alerts find what the program tells", alerts),
        test(fixture, "monitoring: commands of the alerts' sections show what they are to show", commands),
        test(fixture, "monitoring: a credential's end is told as long as its cluster is there", expiry),
    ]
}

/// A kubeconfig whose token expires at `end`, or does not say when.
fn ending(testbed: &Testbed, end: Option<u32>) -> String {
    let claims = end.map_or_else(|| r#"{"sub":"x"}"#.to_owned(), |end| format!(r#"{{"exp":{end}}}"#));
    member_kubeconfig(testbed, &format!("head.{}.signature", URL_SAFE_NO_PAD.encode(claims)))
}

fn alerts(testbed: &Testbed) -> Result<()> {
    apply(testbed, &[namespace("alerts-fleet")])?;
    apply(testbed, &[kubeconfig_secret("alerts-fleet", "one", &ending(testbed, Some(1_900_000_000)))])?;
    let flags = ["--enable=kubeconfig", "--watch-namespaces=alerts-fleet"];
    let controllers = Running::start(testbed, "alerts-clusters", &flags)?;
    wait_secret(testbed, &controllers.namespace, "one")?;
    wait::until("every metric", SOON, || promtool::evaluated(&controllers.metrics()?, &ALERTS))
}

/// One object for each command, with the condition that it shows.
fn commands(testbed: &Testbed) -> Result<()> {
    let fleet = "runbook-fleet";
    profile_kind(testbed)?;
    accounts::prepare(testbed)?;
    apply(testbed, &[namespace(fleet)])?;
    let of = |api: &str, kind: &str, spec: Value| {
        let metadata = json!({"name": fleet, "namespace": fleet});
        json!({"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec})
    };
    let manager = json!({"clusterManager": {"name": "theirs"}});
    let mut cluster = of("cluster.open-cluster-management.io/v1", "ManagedCluster", json!({}));
    cluster["metadata"] = json!({"name": fleet});
    apply(
        testbed,
        &[
            of("authentication.open-cluster-management.io/v1beta1", "ManagedServiceAccount", json!({"rotation": {}})),
            of("work.open-cluster-management.io/v1", "ManifestWork", json!({"workload": {"manifests": []}})),
            of("multicluster.x-k8s.io/v1alpha1", "ClusterProfile", manager),
            cluster,
        ],
    )?;
    let said = |what: &str, kind: &str| {
        let condition = json!({"type": kind, "status": "False", "reason": "Shown", "message": "shown",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        testbed
            .hub
            .server
            .patch(&format!("{what} --subresource=status"), &json!({"status": {"conditions": [condition]}}))
    };
    said(&format!("managedserviceaccount {fleet} -n {fleet}"), "TokenReported")?;
    said(&format!("manifestwork {fleet} -n {fleet}"), "Applied")?;
    said(&format!("managedcluster {fleet}"), "ManagedClusterConditionAvailable")?;
    for heading in SECTIONS {
        let lines = page::commands(page::section(PAGE, &format!("{heading}\n"), "\n#")?);
        ensure!(!lines.is_empty(), "{heading}: no command");
        for line in lines {
            let told = testbed.hub.server.kubectl().shell(&line)?.run()?.success()?;
            let row = told.lines().find(|row| row.starts_with(fleet)).with_context(|| format!("{line}: {told}"))?;
            ensure!(!row.contains("<none>"), "{line}: {told}");
        }
    }
    testbed.hub.server.delete(&format!("namespace {fleet}"))?;
    testbed.hub.server.delete(&format!("managedcluster {fleet}"))
}

fn expiry(testbed: &Testbed) -> Result<()> {
    let (fleet, cluster) = ("expiry-fleet", "cluster=\"one\"");
    apply(testbed, &[namespace(fleet)])?;
    apply(testbed, &[kubeconfig_secret(fleet, "one", &ending(testbed, Some(1_900_000_000)))])?;
    let flags = ["--enable=kubeconfig", "--watch-namespaces=expiry-fleet"];
    let mut controllers = Running::start(testbed, "expiry-clusters", &flags)?;
    let told = |controllers: &Running, end: f64| {
        wait::until_true("the credential's end", SOON, || Ok((controllers.metric(EXPIRY, cluster)? - end).abs() < 1.0))
    };
    told(&controllers, 1_900_000_000.0)?;
    // After a restart nothing is written, but the expiry is still reported.
    controllers.restart()?;
    told(&controllers, 1_900_000_000.0)?;
    apply(testbed, &[kubeconfig_secret(fleet, "one", &ending(testbed, Some(1_950_000_000)))])?;
    told(&controllers, 1_950_000_000.0)?;
    apply(testbed, &[kubeconfig_secret(fleet, "one", &ending(testbed, None))])?;
    told(&controllers, 0.0)?;
    apply(testbed, &[kubeconfig_secret(fleet, "one", &ending(testbed, Some(1_950_000_000)))])?;
    told(&controllers, 1_950_000_000.0)?;
    testbed.hub.server.delete(&format!("secret one -n {fleet}"))?;
    wait_gone(testbed, &controllers.namespace, "one")?;
    told(&controllers, 0.0)
}
