//! Upstream's unmodified hub controllers, ours after them, and upstream's again.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::page::block;
use hub_tests::ports;
use hub_tests::process::Process;
use hub_tests::testbed::Testbed;
use hub_tests::tools::{self, Tool};
use hub_tests::wait;
use serde_json::Value;

use super::klusterlet::Klusterlet;
use super::{Registration, accept, bootstrap_user, condition, exists, get, wait_condition};
use crate::fixture::{SOON, apply, namespace, script};

const PAGE: &str = include_str!("../../../../docs/registration.md");
const NAME: &str = "swap1";
const PLACE: &str = "swap-place";
const ACCEPTED: &str = "HubAcceptedManagedCluster";
const STANDS_IN: &str = "cluster_gateway_controllers_ocm_stands_in";
/// Time for their Lease to expire, and for them to start.
const PATIENCE: Duration = Duration::from_secs(90);

/// The agent's Lease duration: short enough for a renewal within a test, and long enough not to go
/// stale between two leaders.
const BEAT: u64 = 5;

pub fn there_and_back(testbed: &Testbed) -> Result<()> {
    let alone = super::alone();
    apply(testbed, &[namespace("open-cluster-management-hub"), namespace(PLACE)])?;
    bootstrap_user(testbed, PLACE)?;
    let mut theirs = upstream(testbed)?;
    let agent = joined_with_upstream(testbed, &mut theirs)?;
    let (before, agent_before) = (identities(testbed)?, of_agent(testbed, &agent)?);
    ensure!(before.len() >= 5, "{before:?}");
    let mut registration = Registration::install(testbed, PLACE, ("", None), alone)?;
    registration.wait_metric(STANDS_IN, 0.0)?;
    ensure!(!exists(testbed, tunnel().as_str())?, "ours works beside theirs");
    theirs.stop()?;
    wait::until_true("ours to stand in", PATIENCE, || Ok(registration.running.metric(STANDS_IN, "")? >= 1.0))?;
    wait::until_true("the tunnel right", SOON, || exists(testbed, &tunnel()))?;
    wait_condition(testbed, NAME, ACCEPTED, "True/HubClusterAdminAccepted")?;
    agent.wait_beat()?;
    ensure!(identities(testbed)? == before, "written again: {before:?} {:?}", identities(testbed)?);
    let agent_now = of_agent(testbed, &agent)?;
    ensure!(agent_now == agent_before, "{agent_before} {agent_now}");
    // And back to upstream's.
    registration.running.stop()?;
    theirs.start_again()?;
    wait::until_true("theirs to work", PATIENCE, || {
        theirs.check()?;
        leads(&theirs)
    })?;
    agent.wait_beat()?;
    ensure!(uids(&identities(testbed)?) == uids(&before), "made again: {before:?} {:?}", identities(testbed)?);
    let agent_now = of_agent(testbed, &agent)?;
    ensure!(agent_now == agent_before, "{agent_before} {agent_now}");
    drop(agent);
    // They act on a denial, with the objects that ours kept.
    accept(testbed, NAME, false)?;
    wait::until("upstream to take its rights away", PATIENCE, || {
        theirs.check()?;
        ensure!(condition(testbed, NAME, ACCEPTED)? == "False/HubClusterAdminDenied");
        Ok(())
    })
    .with_context(|| theirs.log_tail())?;
    // They do not remove the right that only ours grants: the page says how to.
    ensure!(exists(testbed, tunnel().as_str())?, "upstream takes it away");
    let kept = format!("clusterrolebinding open-cluster-management:bootstrap:{PLACE}");
    let removal = block(PAGE, "sh", "grep cluster-gateway:managedcluster: |")?;
    script(testbed, &testbed.directory("swap-page")?, removal)?;
    ensure!(!exists(testbed, tunnel().as_str())? && exists(testbed, &kept)?, "another was deleted");
    theirs.stop()?;
    testbed.hub.server.delete("lease registration-controller-lock -n open-cluster-management-hub")?;
    registration.running.restart_stopped()?;
    registration.wait_metric(STANDS_IN, 1.0)?;
    testbed.hub.server.delete(&format!("managedcluster {NAME}"))
}

/// The unmodified klusterlet joins, approved and accepted by a person.
fn joined_with_upstream<'t>(testbed: &'t Testbed, theirs: &mut Process) -> Result<Klusterlet<'t>> {
    let mut agent = Klusterlet::start(testbed, NAME, PLACE)?;
    let request = agent.wait_request()?;
    agent.approve(&request)?;
    accept(testbed, NAME, true)?;
    wait::until("upstream to accept", PATIENCE, || {
        theirs.check()?;
        ensure!(condition(testbed, NAME, ACCEPTED)? == "True/HubClusterAdminAccepted");
        ensure!(exists(testbed, &format!("lease managed-cluster-lease -n {NAME}"))?, "no Lease yet");
        Ok(())
    })
    .with_context(|| theirs.log_tail())?;
    agent.wait_joined()?;
    agent.beats(BEAT)?;
    Ok(agent)
}

/// What a swap must not touch: the agent's requests, and since when it is available. It never went
/// stale.
fn of_agent(testbed: &Testbed, agent: &Klusterlet<'_>) -> Result<String> {
    let requests = agent.requests()?;
    let requests: Vec<&str> = requests.iter().filter_map(|request| request["metadata"]["name"].as_str()).collect();
    let cluster = get(testbed, &format!("managedcluster {NAME}"))?;
    let available = crate::fixture::condition(&cluster["status"], "ManagedClusterConditionAvailable");
    let lease = get(testbed, &format!("lease managed-cluster-lease -n {NAME}"))?;
    let uids = [&cluster, &lease].map(|object| object["metadata"]["uid"].to_string());
    Ok(format!("{requests:?} {} {} {uids:?}", available["status"], available["lastTransitionTime"]))
}

/// Whether upstream's controllers hold their Lease.
fn leads(theirs: &Process) -> Result<bool> {
    Ok(std::fs::read_to_string(theirs.log())?.contains("successfully acquired lease"))
}

/// Kinds, names and uids.
fn uids(identities: &[String]) -> Vec<&str> {
    identities.iter().filter_map(|one| Some(one.rsplit_once(' ')?.0)).collect()
}

fn tunnel() -> String {
    format!("clusterrolebinding cluster-gateway:managedcluster:{NAME}:tunnel")
}

/// Uid and version of everything that upstream created for the cluster, except its object and the
/// Lease, which the agent writes.
fn identities(testbed: &Testbed) -> Result<Vec<String>> {
    let kinds = "namespaces,clusterroles,clusterrolebindings,rolebindings";
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
        "--leader-election-lease-duration=10s".to_owned(),
        "--leader-election-renew-deadline=8s".to_owned(),
        "--leader-election-retry-period=1s".to_owned(),
    ];
    Process::start("ocm-controllers", &tools::provide(Tool::OcmRegistration)?, arguments, &directory)
}
