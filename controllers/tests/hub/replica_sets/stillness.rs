//! What is already correct is not written again; and nothing is written while upstream's controller
//! runs.

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::expiry::complete;
use super::{PART, Place, WORK, WRITES, all_at_once};
use crate::fixture::{SOON, apply, event, namespace, versions};

const THEIRS: &str = "sets-theirs";

pub fn restart(testbed: &Testbed) -> Result<()> {
    let mut place = Place::start(testbed, "sets-still")?;
    let clusters = ["sets-still1", "sets-still2"];
    place.clusters(&clusters)?;
    place.choose("p", &[("", &clusters)])?;
    let slow = json!([{"name": "p", "rolloutStrategy": {"type": "Progressive", "progressive": {"maxConcurrency": 1}}}]);
    for (name, references) in [("all", all_at_once("p")), ("slow", slow), ("none", all_at_once("missing"))] {
        place.set(name, "1", &references)?;
    }
    place.wait_works("all", &clusters)?;
    place.wait_works("slow", &clusters[..1])?;
    place.report_done("all", &clusters)?;
    place.wait_condition("all", "PlacementRolledOut: True/Complete")?;
    place.wait_condition("slow", "ManifestworkApplied: False/Processing")?;
    place.wait_condition("none", "PlacementVerified: False/PlacementDecisionNotFound")?;
    place.wait_told("all", 1, [2, 2])?;
    place.wait_told("slow", 1, [1, 2])?;
    let versions = || -> Result<Vec<String>> {
        let sets = versions(&testbed.hub.server, "manifestworkreplicasets -n sets-still")?;
        let works = versions(&testbed.hub.server, &format!("manifestworks -A -l {WORK}/manifestworkreplicaset"))?;
        Ok([sets, works].concat())
    };
    let before = versions()?;
    place.running.restart()?;
    let sets = || place.metric(super::SETS, "");
    wait::until_true("all to be looked at", SOON, || Ok(sets()? > 2.5))?;
    // Only the works of a new set are written after that.
    place.set("last", "1", &all_at_once("p"))?;
    place.wait_works("last", &clusters)?;
    // A write is counted when it is answered, which may be later than its object is seen.
    let works = || place.metric(WRITES, "work");
    wait::until_true("both to count", SOON, || Ok(works()? > 1.5))?;
    let (works, deletes) = (works()?, place.metric(WRITES, "delete")?);
    ensure!((works - 2.0).abs() < 0.1 && deletes == 0.0, "{works} works were written");
    let after = versions()?;
    ensure!(before.iter().all(|one| after.contains(one)), "{before:?} became {after:?}");
    place.end()
}

/// Upstream's Lease, renewed now.
fn lease(holder: &str, seconds: i32) -> Value {
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "work-manager-lock", "namespace": THEIRS},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": now}})
}

pub fn stands_by(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "sets-stands-by")?;
    let clusters = ["sets-stands-by1"];
    place.clusters(&clusters)?;
    place.choose("p", &[("", &clusters)])?;
    apply(testbed, &[namespace(THEIRS), lease("theirs", 3600)])?;
    wait::until_true("that it stands by", SOON, || place.stands_by(super::NAME, true))?;
    ensure!(place.running.get("/readyz?verbose")?.contains("replica-sets-rival"), "it does not say so");
    let told = wait::until("an Event", SOON, || event(testbed, THEIRS, "work-manager-lock", "StandingBy"))?;
    ensure!(told.contains("theirs") && told.contains("--never-stand-by=replica-sets"), "{told}");
    place.set("during", "1", &all_at_once("p"))?;
    complete(&place, clusters[0], "finished", (0, &json!({})))?;
    let finished = format!("manifestwork finished -n {}", clusters[0]);
    let mut place = place;
    // After a restart, the part finds the Lease, too.
    place.running.restart()?;
    wait::until_true("that it stands by again", SOON, || place.stands_by(super::NAME, true))?;
    ensure!(place.works("during")?.is_empty() && place.metric(WRITES, "")? == 0.0, "it writes beside them");
    ensure!(place.json(&finished)?.is_object(), "a work that is complete is theirs to delete");
    apply(testbed, &[lease("theirs", 2)])?;
    place.wait_works("during", &clusters)?;
    place.wait_end(&finished)?;
    place.end()?;
    let values = format!("{PART},controllers.neverStandBy={{replica-sets}}");
    let place = Place::install(testbed, "sets-stands-by", &values)?;
    apply(testbed, &[lease("theirs", 3600)])?;
    place.choose("p", &[("", &clusters)])?;
    place.set("beside", "1", &all_at_once("p"))?;
    place.wait_works("beside", &clusters)?;
    place.delete("lease work-manager-lock -n sets-theirs")?;
    place.end()
}
