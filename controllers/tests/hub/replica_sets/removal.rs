//! Works are deleted with their cluster or their set, and not by mistake.

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};

use super::{Place, WRITES, all_at_once, no_finalizers};
use crate::fixture::SOON;

/// An agent's finalizer.
const FINALIZER: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";

pub fn dropped(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "sets-drop")?;
    let clusters = ["sets-drop1", "sets-drop2", "sets-drop3"];
    place.clusters(&clusters)?;
    place.choose("p", &[("", &clusters)])?;
    place.choose("q", &[("", &clusters[2..])])?;
    place.set("app", "1", &all_at_once("p"))?;
    place.wait_works("app", &clusters)?;
    place.choose("p", &[("", &clusters[..2])])?;
    place.wait_works("app", &clusters[..2])?;
    // A work without the current template is deleted as well; upstream would leave it.
    let slow = json!([{"name": "p", "rolloutStrategy": {"type": "Progressive", "progressive": {"maxConcurrency": 1}}}]);
    place.set("app", "2", &slow)?;
    place.wait_data("app", "2", &clusters[..1])?;
    place.choose("p", &[("", &clusters[..1])])?;
    place.wait_works("app", &clusters[..1])?;
    // Another Placement takes over.
    place.set("app", "2", &all_at_once("q"))?;
    place.wait_works("app", &clusters[2..])?;
    place.choose("q", &[("", &[])])?;
    place.wait_works("app", &[])?;
    place.wait_condition("app", "PlacementVerified: False/PlacementDecisionEmpty")?;
    place.wait_condition("app", "ManifestworkApplied: False/PlacementDecisionEmpty")?;
    place.end()
}

pub fn held(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "sets-held")?;
    let clusters = ["sets-held1", "sets-held2"];
    place.clusters(&clusters)?;
    place.choose("p", &[("", &clusters)])?;
    place.set("app", "1", &all_at_once("p"))?;
    let works = place.wait_works("app", &clusters)?;
    place.delete("placementdecisions --all -n sets-held")?;
    // The Placement's status still counts two.
    let told = place.wait_event("app", "RemovalHeld")?;
    ensure!(told.contains("no work is removed before they agree"), "{told}");
    ensure!(place.works("app")?.len() == 2, "workloads are withdrawn");
    place.delete("placement p -n sets-held")?;
    place.wait_condition("app", "PlacementVerified: False/PlacementDecisionNotFound")?;
    ensure!(place.works("app")?.len() == 2 && place.metric(WRITES, "delete")? == 0.0, "workloads are withdrawn");
    // Applied again, the Placement counts none until it is scheduled.
    place.choose("p", &[("", &clusters[..1])])?;
    let left = place.wait_works("app", &clusters[..1])?;
    let uid = |work: &Value| work["metadata"]["uid"].clone();
    ensure!(uid(&left[0]) == uid(&works[0]), "a workload was withdrawn and came back");
    let deletes = place.metric(WRITES, "delete")?;
    ensure!((deletes - 1.0).abs() < 0.1, "{deletes} works were removed instead of one");
    place.end()
}

/// Works without other finalizers are deleted at once, and so is the set that waits for them.
pub fn foreground(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "sets-front")?;
    let clusters = ["sets-front1", "sets-front2"];
    place.clusters(&clusters)?;
    place.choose("p", &[("", &clusters)])?;
    place.set("app", "1", &all_at_once("p"))?;
    let policy = json!({"spec": {"cascadeDeletionPolicy": "Foreground"}});
    place.patch("manifestworkreplicaset app -n sets-front", &policy)?;
    place.wait_works("app", &clusters)?;
    place.delete("manifestworkreplicaset app -n sets-front --wait=false")?;
    place.wait_end("manifestworkreplicaset app -n sets-front")?;
    ensure!(place.works("app")?.is_empty(), "it is gone before its works");
    place.end()
}

pub fn cascade(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "sets-end")?;
    let clusters = ["sets-end1", "sets-end2"];
    place.clusters(&clusters)?;
    place.choose("p", &[("", &clusters)])?;
    for (name, policy) in [("behind", "Background"), ("before", "Foreground")] {
        place.set(name, "1", &all_at_once("p"))?;
        let policy = json!({"spec": {"cascadeDeletionPolicy": policy}});
        place.patch(&format!("manifestworkreplicaset {name} -n sets-end"), &policy)?;
        for work in place.wait_works(name, &clusters)? {
            finalize(&place, &work, &json!({"metadata": {"finalizers": [FINALIZER]}}))?;
        }
        place.delete(&format!("manifestworkreplicaset {name} -n sets-end --wait=false"))?;
    }
    place.wait_end("manifestworkreplicaset behind -n sets-end")?;
    // The other set stays as long as one of its works does.
    for set in ["behind", "before"] {
        let all_leave = || {
            let works = place.works(set)?;
            Ok(works.len() == 2 && works.iter().all(|work| !work["metadata"]["deletionTimestamp"].is_null()))
        };
        wait::until_true(&format!("works of {set} to leave"), SOON, all_leave)?;
    }
    let works = place.works("before")?;
    finalize(&place, &works[0], &no_finalizers())?;
    place.wait_works("before", &clusters[1..])?;
    ensure!(!place.read("before")?["metadata"]["deletionTimestamp"].is_null(), "it is gone before its works");
    finalize(&place, &works[1], &no_finalizers())?;
    place.wait_end("manifestworkreplicaset before -n sets-end")?;
    for work in place.works("behind")? {
        finalize(&place, &work, &no_finalizers())?;
    }
    place.end()
}

fn finalize(place: &Place<'_>, work: &Value, patch: &Value) -> Result<()> {
    let text = |field: &str| work["metadata"][field].as_str().unwrap_or_default();
    place.patch(&format!("manifestwork {} -n {}", text("name"), text("namespace")), patch)
}
