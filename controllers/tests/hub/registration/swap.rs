//! Upstream's hub controllers as they are, and ours after them, and they again.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::ports;
use hub_tests::process::Process;
use hub_tests::testbed::Testbed;
use hub_tests::tools::{self, Tool};
use hub_tests::wait;
use serde_json::Value;

use super::{Registration, accept, condition, exists, managed, wait_condition};
use crate::fixture::{SOON, apply, namespace};

const NAME: &str = "swap1";
const PLACE: &str = "swap-place";
const ACCEPTED: &str = "HubAcceptedManagedCluster";
const STANDS_IN: &str = "cluster_gateway_controllers_ocm_stands_in";
/// For their Lease to run out, and for them to start.
const PATIENCE: Duration = Duration::from_secs(90);

pub fn there_and_back(testbed: &Testbed) -> Result<()> {
    let alone = super::alone();
    apply(testbed, &[namespace("open-cluster-management-hub"), managed(NAME)])?;
    let mut theirs = upstream(testbed)?;
    accept(testbed, NAME, true)?;
    wait::until("upstream to accept", PATIENCE, || {
        theirs.check()?;
        ensure!(condition(testbed, NAME, ACCEPTED)? == "True/HubClusterAdminAccepted");
        ensure!(exists(testbed, &format!("lease managed-cluster-lease -n {NAME}"))?, "no Lease yet");
        Ok(())
    })
    .with_context(|| theirs.log_tail())?;
    let before = identities(testbed)?;
    ensure!(before.len() >= 5, "{before:?}");
    let mut registration = Registration::install(testbed, PLACE, "", alone)?;
    registration.wait_metric(STANDS_IN, 0.0)?;
    ensure!(!exists(testbed, tunnel().as_str())?, "ours works beside theirs");
    theirs.stop()?;
    wait::until_true("ours to stand in", PATIENCE, || Ok(registration.running.metric(STANDS_IN, "")? >= 1.0))?;
    wait::until_true("the tunnel right", SOON, || exists(testbed, &tunnel()))?;
    wait_condition(testbed, NAME, ACCEPTED, "True/HubClusterAdminAccepted")?;
    ensure!(identities(testbed)? == before, "written again: {before:?} {:?}", identities(testbed)?);
    // And back.
    registration.running.stop()?;
    theirs.start_again()?;
    // They take a no, by the objects that ours has kept.
    accept(testbed, NAME, false)?;
    wait::until("upstream to take its rights away", PATIENCE, || {
        theirs.check()?;
        ensure!(condition(testbed, NAME, ACCEPTED)? == "False/HubClusterAdminDenied");
        Ok(())
    })
    .with_context(|| theirs.log_tail())?;
    theirs.stop()?;
    testbed.hub.server.delete("lease registration-controller-lock -n open-cluster-management-hub")?;
    registration.running.restart_stopped()?;
    registration.wait_metric(STANDS_IN, 1.0)?;
    testbed.hub.server.delete(&format!("managedcluster {NAME}"))
}

fn tunnel() -> String {
    format!("clusterrolebinding cluster-gateway:managedcluster:{NAME}:tunnel")
}

/// Uid and version of everything that upstream made for the cluster, but its object.
fn identities(testbed: &Testbed) -> Result<Vec<String>> {
    let kinds = "namespaces,clusterroles,clusterrolebindings,rolebindings,leases.coordination.k8s.io";
    let line = format!("{kinds} -A -l open-cluster-management.io/cluster-name=swap1");
    let found = testbed.hub.server.read(&line)?;
    let identity = |object: &Value| {
        let metadata = &object["metadata"];
        format!("{} {} {} {}", object["kind"], metadata["name"], metadata["uid"], metadata["resourceVersion"])
    };
    let mut all: Vec<String> = found["items"].as_array().into_iter().flatten().map(identity).collect();
    all.retain(|one| !one.contains(":tunnel"));
    all.sort_unstable();
    Ok(all)
}

fn upstream(testbed: &Testbed) -> Result<Process> {
    let directory = testbed.directory("ocm-controllers")?;
    let arguments = [
        "controller".to_owned(),
        format!("--kubeconfig={}", testbed.hub.server.kubectl().kubeconfig.display()),
        format!("--listen=127.0.0.1:{}", ports::free()?),
        "--namespace=open-cluster-management-hub".to_owned(),
        "--leader-election-lease-duration=15s".to_owned(),
        "--leader-election-renew-deadline=10s".to_owned(),
        "--leader-election-retry-period=2s".to_owned(),
    ];
    Process::start("ocm-controllers", &tools::provide(Tool::OcmRegistration)?, arguments, &directory)
}
