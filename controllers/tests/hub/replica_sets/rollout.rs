//! Templates reach clusters: all at once, some at a time, group by group.

use std::time::Duration;

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{CLUSTER, PART, Place, SETS, WORK, all_at_once};
use crate::fixture::{SOON, apply, namespace};

pub fn all(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "sets-all")?;
    let clusters = ["sets-all1", "sets-all2", "sets-all3"];
    place.clusters(&clusters)?;
    place.choose("p", &[("", &clusters)])?;
    place.set("app", "1", &all_at_once("p"))?;
    let works = place.wait_works("app", &clusters)?;
    for work in &works {
        let (metadata, name) = (&work["metadata"], work["metadata"]["name"].as_str().unwrap_or_default());
        ensure!(metadata["generateName"] == "app" && name.len() == "app".len() + 5, "{metadata}");
        let labels = json!({"team": "blue", format!("{WORK}/manifestworkreplicaset"): "sets-all.app",
            format!("{WORK}/placementname"): "p"});
        ensure!(metadata["labels"] == labels, "{metadata}");
        ensure!(work["spec"] == place.read("app")?["spec"]["manifestWorkTemplate"], "{work}");
    }
    ensure!(place.read("app")?["metadata"]["finalizers"] == json!([format!("{WORK}/manifest-work-cleanup")]));
    place.wait_condition("app", "PlacementVerified: True/AsExpected")?;
    place.wait_condition("app", "PlacementRolledOut: False/Progressing")?;
    place.wait_condition("app", "ManifestworkApplied: False/Processing")?;
    place.report_done("app", &clusters)?;
    place.wait_condition("app", "PlacementRolledOut: True/Complete")?;
    place.wait_condition("app", "ManifestworkApplied: True/AsExpected")?;
    let status = place.read("app")?["status"].clone();
    let counts = json!({"total": 3, "applied": 3, "available": 3, "progressing": 0, "degraded": 0, "desiredTotal": 0,
        "updated": 0});
    ensure!(status["summary"] == counts, "{status}");
    let of_placement =
        json!([{"name": "p", "availableDecisionGroups": "1 (3 / 3 clusters applied)", "summary": counts}]);
    ensure!(status["placementSummary"] == of_placement, "{status}");
    ensure!((place.metric(SETS, "complete")? - 1.0).abs() < 0.1, "it is not counted");
    // The same works get another template.
    place.set("app", "2", &all_at_once("p"))?;
    place.wait_data("app", "2", &clusters)?;
    let uids = |works: &[Value]| works.iter().map(|work| work["metadata"]["uid"].clone()).collect::<Vec<_>>();
    ensure!(uids(&place.works("app")?) == uids(&works), "works are made anew");
    place.wait_condition("app", "PlacementRolledOut: False/Progressing")?;
    // An edit of a work by hand is undone.
    let name = works[0]["metadata"]["name"].as_str().unwrap_or_default();
    let edit = json!({"spec": {"workload": {"manifests": []}}});
    place.patch(&format!("manifestwork {name} -n sets-all1"), &edit)?;
    place.wait_data("app", "2", &clusters)?;
    place.end()
}

fn some(progress: &Value) -> Value {
    json!([{"name": "p", "rolloutStrategy": {"type": "Progressive", "progressive": progress}}])
}

pub fn progressive(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "sets-some")?;
    let clusters = ["sets-some1", "sets-some2", "sets-some3"];
    place.clusters(&clusters)?;
    place.choose("p", &[("", &clusters)])?;
    place.set("app", "1", &some(&json!({"maxConcurrency": 1, "minSuccessTime": "4s"})))?;
    place.wait_works("app", &clusters[..1])?;
    place.report("app", clusters[0], &[("Applied", "True"), ("Available", "False"), ("Progressing", "True")])?;
    place.wait_condition("app", "ManifestworkApplied: False/Processing")?;
    ensure!(place.works("app")?.len() == 1, "it does not wait");
    // Before the report, whose own time counts.
    let before = Instant::now();
    place.report_done("app", &clusters[..1])?;
    place.wait_works("app", &clusters[..2])?;
    let waited = before.elapsed();
    // Times have whole seconds.
    ensure!((Duration::from_secs(3)..Duration::from_secs(10)).contains(&waited), "{waited:?} instead of 4 s");
    place.report_done("app", &clusters[..2])?;
    place.wait_works("app", &clusters)?;
    place.report_done("app", &clusters[2..])?;
    place.wait_condition("app", "PlacementRolledOut: True/Complete")?;
    place.end()
}

pub fn failures(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "sets-fail")?;
    let clusters = ["sets-fail1", "sets-fail2", "sets-fail3", "sets-fail4"];
    place.clusters(&clusters)?;
    place.choose("p", &[("", &clusters)])?;
    let strategy = |most: u8| some(&json!({"maxConcurrency": 2, "maxFailures": most}));
    place.set("app", "1", &strategy(0))?;
    place.wait_works("app", &clusters[..2])?;
    place.report("app", clusters[0], &[("Applied", "True"), ("Progressing", "True"), ("Degraded", "True")])?;
    wait::until_true("that it stops", SOON, || Ok(place.metric(SETS, "stopped")? > 0.5))?;
    place.report_done("app", &clusters[1..2])?;
    wait::until_true("that it is counted", SOON, || Ok(place.read("app")?["status"]["summary"]["available"] == 1))?;
    ensure!(place.works("app")?.len() == 2, "it goes on in spite of a failure");
    place.wait_condition("app", "ManifestworkApplied: False/NotAsExpected")?;
    // One cluster may fail: it still counts as one of the concurrent ones.
    place.set("app", "1", &strategy(1))?;
    place.wait_works("app", &clusters[..3])?;
    place.report_done("app", &clusters[2..3])?;
    place.wait_works("app", &clusters)?;
    place.end()
}

pub fn per_group(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "sets-group")?;
    let clusters = ["sets-group1", "sets-group2", "sets-group3"];
    place.clusters(&clusters)?;
    place.choose("p", &[("rest", &clusters[..2]), ("canary", &clusters[2..])])?;
    let strategy = json!([{"name": "p", "rolloutStrategy": {"type": "ProgressivePerGroup",
        "progressivePerGroup": {"mandatoryDecisionGroups": [{"groupName": "canary"}]}}}]);
    place.set("app", "1", &strategy)?;
    place.wait_works("app", &clusters[2..])?;
    place.report("app", clusters[2], &[("Applied", "True"), ("Progressing", "True")])?;
    place.wait_condition("app", "ManifestworkApplied: False/Processing")?;
    ensure!(place.works("app")?.len() == 1, "the canary is not waited for");
    place.report_done("app", &clusters[2..])?;
    place.wait_works("app", &clusters)?;
    let summary = place.read("app")?["status"]["placementSummary"][0]["availableDecisionGroups"].clone();
    ensure!(summary.as_str().is_some_and(|text| text.starts_with("2 (")), "{summary}");
    place.report_done("app", &clusters)?;
    place.wait_condition("app", "PlacementRolledOut: True/Complete")?;
    by_index(&place, &clusters)?;
    place.end()
}

/// Without mandatory groups: one after the other by index, each within its own `maxFailures`.
fn by_index(place: &Place<'_>, clusters: &[&str]) -> Result<()> {
    let strategy = |most: u8| {
        json!([{"name": "p", "rolloutStrategy": {"type": "ProgressivePerGroup",
            "progressivePerGroup": {"maxFailures": most}}}])
    };
    place.set("plain", "1", &strategy(0))?;
    place.wait_works("plain", &clusters[..2])?;
    place.report("plain", clusters[0], &[("Applied", "True"), ("Progressing", "True"), ("Degraded", "True")])?;
    place.report_done("plain", &clusters[1..2])?;
    wait::until_true("that it stops", SOON, || Ok(place.metric(SETS, "stopped")? > 0.5))?;
    wait::until_true("that it is counted", SOON, || Ok(place.read("plain")?["status"]["summary"]["available"] == 1))?;
    ensure!(place.works("plain")?.len() == 2, "the next group begins in spite of a failure");
    place.set("plain", "1", &strategy(1))?;
    place.wait_works("plain", clusters).map(drop)
}

/// What upstream's agent reports of a work without rules.
const APPLIED: [(&str, &str); 2] = [("Applied", "True"), ("Available", "True")];

pub fn needs_rules(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "sets-rules")?;
    let clusters = ["sets-rules1", "sets-rules2"];
    place.clusters(&clusters)?;
    place.choose("p", &[("", &clusters)])?;
    place.set("app", "1", &some(&json!({"maxConcurrency": 1})))?;
    place.wait_works("app", &clusters[..1])?;
    place.report("app", clusters[0], &APPLIED)?;
    place.wait_works("app", &clusters)?;
    place.report("app", clusters[1], &APPLIED)?;
    place.wait_condition("app", "PlacementRolledOut: True/Complete")?;
    place.end()?;
    // As upstream, it waits forever.
    let values = format!("{PART},controllers.rolloutNeedsRules=true");
    let place = Place::with(testbed, "sets-rules", &values)?;
    place.choose("p", &[("", &clusters)])?;
    place.set("app", "1", &some(&json!({"maxConcurrency": 1})))?;
    place.wait_works("app", &clusters[..1])?;
    place.report("app", clusters[0], &APPLIED)?;
    wait::until_true("that it is counted", SOON, || Ok(place.read("app")?["status"]["summary"]["available"] == 1))?;
    ensure!(place.works("app")?.len() == 1, "it goes on without a rule");
    place.end()
}

/// With the part that schedules: a label moves a cluster into the choice, and out of it.
pub fn placed(testbed: &Testbed) -> Result<()> {
    let place = Place::among_clusters(testbed, "sets-placed", &format!("{PART},controllers.parts.placement=true"))?;
    let set = json!({"apiVersion": format!("{CLUSTER}/v1beta2"), "kind": "ManagedClusterSet",
        "metadata": {"name": "sets-placed"}, "spec": {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}}});
    let binding = json!({"apiVersion": format!("{CLUSTER}/v1beta2"), "kind": "ManagedClusterSetBinding",
        "metadata": {"name": "sets-placed", "namespace": place.name}, "spec": {"clusterSet": "sets-placed"}});
    let cluster = |name: &str, place: &str| {
        json!({"apiVersion": format!("{CLUSTER}/v1"), "kind": "ManagedCluster",
            "metadata": {"name": name, "labels": {format!("{CLUSTER}/clusterset"): "sets-placed", "place": place}},
            "spec": {"hubAcceptsClient": false}})
    };
    let selector = json!({"labelSelector": {"matchLabels": {"place": "in"}}});
    let placement = json!({"apiVersion": format!("{CLUSTER}/v1beta1"), "kind": "Placement",
        "metadata": {"name": "p", "namespace": place.name},
        "spec": {"predicates": [{"requiredClusterSelector": selector}]}});
    let (one, two) = ("sets-placed1", "sets-placed2");
    apply(
        testbed,
        &[namespace(one), namespace(two), set, binding, placement, cluster(one, "in"), cluster(two, "out")],
    )?;
    place.set("app", "1", &all_at_once("p"))?;
    place.wait_works("app", &[one])?;
    apply(testbed, &[cluster(two, "in")])?;
    place.wait_works("app", &[one, two])?;
    apply(testbed, &[cluster(one, "out")])?;
    place.wait_works("app", &[two])?;
    place.end()?;
    testbed.hub.server.delete(&format!("managedclusters {one} {two}"))?;
    testbed.hub.server.delete("managedclusterset sets-placed")
}
