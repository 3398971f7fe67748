//! Other schedulers, and Placements whose choice never settles.

use anyhow::{Result, ensure};
use hub_tests::promtool;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{Place, WRITES, cluster, exactly};
use crate::fixture::{SOON, apply, event, namespace};

const THEIRS: &str = "placement-theirs";

/// Upstream's Lease, renewed now.
fn lease(holder: &str, seconds: i32) -> Value {
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "placement-lock", "namespace": THEIRS},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": now}})
}

pub fn stands_by(testbed: &Testbed) -> Result<()> {
    let mut place = Place::start(testbed, "placement-stands-by")?;
    place.sets(&["stands-by"])?;
    apply(testbed, &[cluster("stands-by1", "stands-by", &json!({})), namespace(THEIRS)])?;
    place.place("before", &json!({"clusterSets": ["stands-by"]}))?;
    place.wait_chosen("before", &["stands-by1"])?;
    // Their Lease may be in any namespace.
    apply(testbed, &[lease("theirs", 3600)])?;
    wait::until_true("that it stands by", SOON, || place.stands_by(super::NAME, true))?;
    promtool::evaluated(&place.running.metrics()?, &["ClusterGatewayStandingBy"])?;
    ensure!(place.running.get("/readyz?verbose")?.contains("placement-rival"), "it does not say so");
    let told = wait::until("an Event", SOON, || event(testbed, THEIRS, "placement-lock", "StandingBy"))?;
    ensure!(told.contains("theirs") && told.contains("--never-stand-by=placement"), "{told}");
    let nobody = place.running.get("/debug/placement?name=placement-stands-by/before")?;
    ensure!(nobody.contains("stands by"), "{nobody}");
    place.place("during", &json!({"clusterSets": ["stands-by"]}))?;
    let writes = place.metric(WRITES, "")?;
    // After a restart, the part finds the Lease, too.
    place.running.restart()?;
    wait::until_true("that it stands by again", SOON, || place.stands_by(super::NAME, true))?;
    ensure!(
        place.decisions("during")?.is_empty() && place.metric(WRITES, "")? == 0.0,
        "it writes beside them ({writes})"
    );
    // The other scheduler dies: once its Lease has expired, the part continues.
    apply(testbed, &[lease("theirs", 2)])?;
    place.wait_chosen("during", &["stands-by1"])?;
    ensure!(!place.running.get("/readyz?verbose")?.contains("[-]placement-rival"), "it is not ready");
    place.end(&[], &[])?;
    // With `neverStandBy`, or if it looks for rivals in another namespace only, the part works in
    // spite of them.
    for value in ["neverStandBy={placement}", "rivalNamespaces={open-cluster-management-hub}"] {
        let values = format!("controllers.parts.placement=true,controllers.{value}");
        let place = Place::install(testbed, "placement-stands-by", &values)?;
        apply(testbed, &[lease("theirs", 3600)])?;
        place.sets(&["stands-by"])?;
        place.place("beside", &json!({"clusterSets": ["stands-by"]}))?;
        place.wait_chosen("beside", &["stands-by1"])?;
        place.delete("lease placement-lock -n placement-theirs")?;
        let is_last = value.starts_with("rival");
        place.end(if is_last { &["stands-by1"] } else { &[] }, if is_last { &["stands-by"] } else { &[] })?;
    }
    Ok(())
}

pub fn left_alone(testbed: &Testbed) -> Result<()> {
    let mut place = Place::start(testbed, "placement-left-alone")?;
    place.sets(&["left-alone"])?;
    apply(testbed, &["left-alone1", "left-alone2"].map(|name| cluster(name, "left-alone", &json!({}))))?;
    let one = json!({"clusterSets": ["left-alone"], "numberOfClusters": 1});
    // One after the other: within one round, Placements are decided by name, and Balance counts the
    // earlier ones.
    place.place("theirs", &one)?;
    place.wait_chosen("theirs", &["left-alone1"])?;
    place.place("ours", &one)?;
    place.wait_chosen("ours", &["left-alone2"])?;
    let scheduler = "--subresource=status --field-manager=placement";
    let other = json!({"status": {"decisions": [{"clusterName": "left-alone2", "reason": ""}]}});
    place.patch(&format!("placementdecision theirs-decision-1 {scheduler}"), &other)?;
    let told = place.wait_event("theirs", "SchedulerConflict")?;
    ensure!(told.starts_with("placement also writes the decisions"), "{told}");
    // The conflicting decision is left as it is; changes still affect other Placements.
    place.delete("managedcluster left-alone2")?;
    place.wait_chosen("ours", &["left-alone1"])?;
    ensure!(place.chosen("theirs")? == ["left-alone2"], "it is fought over");
    // A changed spec makes the Placement ours again.
    place.place("theirs", &json!({"clusterSets": ["left-alone"], "numberOfClusters": 2}))?;
    place.wait_chosen("theirs", &["left-alone1"])?;
    // After a restart, the part takes over what another scheduler left, and writes only what is
    // wrong.
    let none = json!({"status": {"decisions": []}});
    place.patch(&format!("placementdecision ours-decision-1 {scheduler}"), &none)?;
    place.wait_event("ours", "SchedulerConflict")?;
    place.running.restart()?;
    place.wait_chosen("ours", &["left-alone1"])?;
    place.end(&["left-alone1"], &["left-alone"])
}

pub fn unstable(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "placement-unstable")?;
    place.sets(&["unstable"])?;
    apply(testbed, &["unstable1", "unstable2"].map(|name| cluster(name, "unstable", &json!({}))))?;
    let policy = exactly(&[("Steady", -1)]);
    let spec = json!({"clusterSets": ["unstable"], "numberOfClusters": 1, "prioritizerPolicy": policy});
    place.place("flaps", &spec)?;
    let told = place.wait_event("flaps", "Unstable")?;
    ensure!(told.contains("after 3 rounds"), "{told}");
    // One decision is created and its list written three times, with at most three writes of the
    // status.
    let writes = place.metric(WRITES, "")?;
    ensure!((4.0..=7.0).contains(&writes), "{writes} writes");
    place.place("calm", &json!({"clusterSets": ["unstable"]}))?;
    place.wait_chosen("calm", &["unstable1", "unstable2"])?;
    ensure!(place.chosen("flaps")?.len() == 1, "it has a cluster");
    place.end(&["unstable1", "unstable2"], &["unstable"])
}
