//! A member's API server is killed: its workload runs on another member, and stays there when the
//! first member is back.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::{pace, promtool, wait};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{CLUSTER, Fleet, NAMES, SET, WORK};
use crate::fixture::{SOON, apply};

const TAINT: &str = "cluster.open-cluster-management.io/unreachable";
/// The shortest time between two probes of a member: the period for Leases of one second.
const PERIOD: Duration = Duration::from_secs(10);
/// From the first failed probe: at least two periods.
const GRACE: Duration = Duration::from_secs(20);
/// Time until a loss is known, and until three answers in a row end it.
const KNOWN: Duration = Duration::from_secs(45);
/// How long the patient workload tolerates the loss, in seconds.
const TOLERATED: u64 = 4;
/// Time for a step that follows another immediately, on a busy machine. Times on the hub have whole
/// seconds.
const SLACK: Duration = Duration::from_millis(2500);

/// The steps so far, with the time of each since the loss.
struct Steps {
    began: Instant,
    told: Vec<String>,
}

pub fn of_one(fleet: &mut Fleet<'_>) -> Result<()> {
    let [lost, stays, spare] = NAMES;
    steady(fleet)?;
    patient(fleet)?;
    fleet.wait_chosen("patient", &[lost, stays])?;
    fleet.wait_work("patient", lost, "Applied", "True/AppliedManifestWorkComplete")?;
    fleet.wait_counted(3.0, 0.0)?;
    [lost, stays].iter().try_for_each(|name| fleet.wait_pods(name, "web", 2))?;
    fleet.wait_pods(spare, "web", 0)?;

    fleet.servers[0].stop()?;
    let mut steps = Steps { began: Instant::now(), told: Vec::new() };
    fleet.wait_available_within(KNOWN, lost, "Unknown/MemberUnreachable")?;
    let took = steps.done("Available is Unknown");
    // A probe may have failed during the kill; and another was answered at most one period before.
    ensure!(took + SLACK > GRACE && took < PERIOD + GRACE + SLACK, "{took:?}");
    let added = wait::until("its taint", SOON, || {
        let times = times_of_taint(&fleet.cluster(lost)?)?;
        times.first().copied().context("no such taint")
    })?;
    steps.done("tainted");
    fleet.wait_counted(2.0, 1.0)?;
    let metrics = fleet.running.metrics()?;
    fleet.wait_chosen("web", &[stays, spare])?;
    steps.done("another is chosen");
    fleet.wait_work("web", spare, "Applied", "True/AppliedManifestWorkComplete")?;
    wait::until("its pods to run", SOON, || {
        let ready = fleet.object(spare, "deployment web")?["status"]["readyReplicas"].clone();
        ensure!(ready == 2, "{ready}");
        Ok(())
    })?;
    let moved = steps.done("it runs there");
    ensure!(moved < took + 4 * SLACK, "the loss was known after {took:?}, and it ran elsewhere after {moved:?}");
    tolerated(fleet, added, &mut steps)?;

    let version = decision(fleet)?;
    wait::until("the old work to wait for its member", SOON, || {
        let work = fleet.work("web", lost)?;
        let told = super::condition(&work["status"], "Deleting")["message"].clone();
        ensure!(told.as_str().is_some_and(|told| told.contains("does not answer")), "{work}");
        Ok(())
    })?;
    fleet.servers[0].start_again()?;
    fleet.servers[0].wait_ready()?;
    steps.done("the member is back");
    fleet.wait_available_within(KNOWN, lost, "True/MemberAnswers")?;
    wait::until_true("the end of its taint", SOON, || Ok(times_of_taint(&fleet.cluster(lost)?)?.is_empty()))?;
    steps.done("it is available");
    let (woken, allowance) = pace::beside(&fleet.testbed.hub.server, || {
        let known = Instant::now();
        wait::until_true("the end of what it ran", SOON, || Ok(fleet.object(lost, "deployment web")?.is_null()))?;
        wait::until_true("the end of its work", SOON, || Ok(fleet.work("web", lost).is_err()))?;
        Ok(known.elapsed())
    })?;
    steps.done("the old copy is gone");
    // Without the report, the work would rest for a minute at a time by then.
    ensure!(woken < SLACK + allowance, "the report that it is back woke nobody: the work went on after {woken:?}");
    fleet.wait_pods(lost, "web", 0)?;
    [stays, spare].iter().try_for_each(|name| fleet.wait_pods(name, "web", 2))?;
    fleet.wait_counted(3.0, 0.0)?;
    ensure!(decision(fleet)? == version, "the choice flaps: {:?}", fleet.chosen("web")?);
    ensure!(fleet.chosen("patient")? == [stays, spare], "the choice flaps: {:?}", fleet.chosen("patient")?);
    steps.print();
    promtool::evaluated(&metrics, &["ClusterGatewayClustersLost"])
}

/// By Balance, the other workload's decisions would rank the spare cluster lower: a higher weight
/// of Steady keeps the choice.
fn steady(fleet: &Fleet<'_>) -> Result<()> {
    let weight = json!([{"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Steady"}, "weight": 3}]);
    let policy = json!({"spec": {"prioritizerPolicy": {"configurations": weight}}});
    fleet.patch("placement web -n default", &policy)
}

/// A workload that tolerates the loss of a member for a while.
fn patient(fleet: &Fleet<'_>) -> Result<()> {
    let toleration = json!({"key": TAINT, "operator": "Exists", "tolerationSeconds": TOLERATED});
    let placement = json!({"apiVersion": format!("{CLUSTER}/v1beta1"), "kind": "Placement",
        "metadata": {"name": "patient", "namespace": "default"},
        "spec": {"clusterSets": [SET], "numberOfClusters": 2, "tolerations": [toleration],
            "prioritizerPolicy": {"mode": "Exact", "configurations": [
                {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Steady"}, "weight": 1}]}}});
    let manifest =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "patient", "namespace": "default"}});
    let set = json!({"apiVersion": format!("{WORK}/v1alpha1"), "kind": "ManifestWorkReplicaSet",
        "metadata": {"name": "patient", "namespace": "default"},
        "spec": {"cascadeDeletionPolicy": "Background", "placementRefs": [{"name": "patient", "rolloutStrategy": {"type": "All"}}],
            "manifestWorkTemplate": {"workload": {"manifests": [manifest]}}}});
    apply(fleet.testbed, &[placement, set])
}

/// The patient workload moves once its toleration has expired, and not before, by the hub's times
/// of the taint and of the decision.
fn tolerated(fleet: &Fleet<'_>, added: Timestamp, steps: &mut Steps) -> Result<()> {
    let [_, stays, spare] = NAMES;
    fleet.wait_chosen("patient", &[stays, spare])?;
    steps.done("so is one for the patient workload");
    let line = "placementdecision patient-decision-1 -n default";
    let decision = fleet.json(line)?;
    let fields = decision["metadata"]["managedFields"].as_array().into_iter().flatten();
    let written = fields.filter(|entry| entry["subresource"] == "status").filter_map(|entry| entry["time"].as_str());
    let written: Timestamp = written.max().context("no time")?.parse()?;
    let lasted = Duration::try_from(written.duration_since(added))?;
    let tolerated = Duration::from_secs(TOLERATED);
    ensure!(lasted >= tolerated && lasted < tolerated + SLACK, "it left {lasted:?} after the taint");
    Ok(())
}

/// When the taints with that key were added.
fn times_of_taint(cluster: &Value) -> Result<Vec<Timestamp>> {
    let taints = cluster["spec"]["taints"].as_array().into_iter().flatten();
    let added = taints.filter(|taint| taint["key"] == TAINT).map(|taint| &taint["timeAdded"]);
    added.map(|time| Ok(time.as_str().context("no time")?.parse()?)).collect()
}

/// The version of the workload's decision: each write changes it.
fn decision(fleet: &Fleet<'_>) -> Result<Value> {
    Ok(fleet.json("placementdecision web-decision-1 -n default")?["metadata"]["resourceVersion"].clone())
}

// === impl Steps ===

impl Steps {
    fn done(&mut self, what: &str) -> Duration {
        let took = self.began.elapsed();
        self.told.push(format!("{:6.2} s  {what}", took.as_secs_f64()));
        took
    }

    #[allow(clippy::print_stdout, reason = "how long a loss takes belongs to the output of a run")]
    fn print(&self) {
        println!("a member's API server was killed:\n{}", self.told.join("\n"));
    }
}
