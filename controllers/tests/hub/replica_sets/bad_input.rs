//! Errors in a set are reported on that set and affect no other.

use anyhow::{Context as _, Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};

use super::{Place, SETS, all_at_once};
use crate::fixture::SOON;

pub fn answered(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "sets-bad")?;
    let clusters = ["sets-bad1", "sets-bad2"];
    place.clusters(&clusters)?;
    place.choose("p", &[("", &clusters)])?;
    place.choose("same", &[("", &clusters[..1])])?;
    place.set("good", "1", &all_at_once("p"))?;
    place.wait_works("good", &clusters)?;
    strategies(&place)?;

    // `sets-bad.` and 55 more characters are 64.
    let long = "n".repeat(55);
    place.set(&long, "1", &all_at_once("p"))?;
    let told = place.wait_condition(&long, "ManifestworkApplied: False/InvalidManifestWorkName")?;
    ensure!(told.contains("at most 63 characters"), "{told}");
    // No label value can name the set, but the names of its works would begin with its name.
    let all = place.json("manifestworks -n sets-bad1")?;
    let works = all["items"].as_array().context("no list")?;
    let is_of_it = |work: &Value| work["metadata"]["generateName"] == long;
    ensure!(!works.is_empty() && !works.iter().any(is_of_it), "it has works: {all}");
    let fits = "n".repeat(54);
    place.set(&fits, "1", &all_at_once("p"))?;
    place.wait_works(&fits, &clusters)?;
    place.set("nowhere", "1", &all_at_once("missing"))?;
    place.wait_condition("nowhere", "PlacementVerified: False/PlacementDecisionNotFound")?;

    // Two Placements choose the same cluster: each gets a work there.
    let both = json!([{"name": "p", "rolloutStrategy": {"type": "All"}},
        {"name": "same", "rolloutStrategy": {"type": "All"}}]);
    place.set("both", "1", &both)?;
    place.wait_works("both", &["sets-bad1", "sets-bad1", "sets-bad2"])?;
    let told = place.wait_event("both", "PlacementsOverlap")?;
    ensure!(told.contains("choose sets-bad1: each has a work there"), "{told}");
    place.set("both", "1", &all_at_once("same"))?;
    place.wait_works("both", &clusters[..1])?;

    // A cluster without a namespace has no work; the others do, and it gets its own as soon as the
    // namespace exists.
    place.choose("half", &[("", &["sets-bad1", "sets-bad-none"])])?;
    place.set("half", "1", &all_at_once("half"))?;
    place.wait_works("half", &clusters[..1])?;
    let told = place.wait_event("half", "WorksFailed")?;
    ensure!(told.contains("1 of 2 works could not be written: cluster sets-bad-none: "), "{told}");
    place.clusters(&["sets-bad-none"])?;
    place.wait_works("half", &["sets-bad-none", "sets-bad1"])?;

    place.report_done("good", &clusters)?;
    place.wait_condition("good", "PlacementRolledOut: True/Complete")?;
    ensure!(place.works("good")?.len() == 2);
    place.end()
}

/// Strategies that cannot be followed. The part need not judge those that the kind's schema
/// refuses.
fn strategies(place: &Place<'_>) -> Result<()> {
    let of =
        |progress: Value| json!([{"name": "p", "rolloutStrategy": {"type": "Progressive", "progressive": progress}}]);
    let group = json!({"mandatoryDecisionGroups": [{"groupIndex": -1}]});
    let mut refused = Vec::new();
    for (name, progress, message) in [
        ("concurrency", json!({"maxConcurrency": "x"}), "maxConcurrency"),
        ("deadline", json!({"progressDeadline": "soon"}), "invalid timeout format"),
        // The schema's pattern accepts it.
        ("later", json!({"progressDeadline": "5months"}), "invalid timeout format"),
        ("success", json!({"minSuccessTime": "soon"}), "minSuccessTime"),
        ("group", group, "placementRefs: "),
    ] {
        // It has works of an earlier strategy, which stay.
        place.set(name, "1", &all_at_once("p"))?;
        place.wait_works(name, &["sets-bad1", "sets-bad2"])?;
        if place.set(name, "2", &of(progress)).is_err() {
            refused.push(name);
            continue;
        }
        let told = place.wait_condition(name, "PlacementVerified: False/NotAsExpected")?;
        ensure!(told.contains(message), "{name}: {told}");
        ensure!(place.with_data(name, "1")?.len() == 2, "{name}: works are touched");
    }
    ensure!(refused == ["concurrency", "deadline"], "{refused:?} are refused by the schema");
    wait::until_true("that they are counted", SOON, || Ok(place.metric(SETS, "invalid")? > 2.5))
}
