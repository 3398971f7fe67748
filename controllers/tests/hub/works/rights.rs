//! The chart grants no right that the part would not miss, and all that it needs.

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};

use super::{Place, WORKS, config_map, strategy};
use crate::fixture::{SOON, condition, wait_end_within};
use crate::part::Part;
use crate::rights::{is_refused_to, nothing_refused, rendered, started_without};

/// Where the controllers are: what they are refused is in the log of all tests.
const PLACE: &str = "works-rights";
const PART: &str = "controllers.parts.manifestworks=true";
const CLUSTER: &str = "works-entitled";
/// Without it, one that is complete stays.
const DELETE: (&str, &str) = ("manifestworks", "delete");

pub fn less(testbed: &Testbed) -> Result<()> {
    let mut place = Place { part: Part::install(testbed, PLACE, PART, vec![super::alone()])?, cluster: CLUSTER };
    place.register(CLUSTER)?;
    place.deliver(Some("push"))?;
    testbed.member.server.apply(&[crate::fixture::namespace(CLUSTER)])?;
    all_to_do(&place, 0)?;
    all_done(&place, 0)?;
    all_to_do(&place, 1)?;
    all_done(&place, 1)?;
    nothing_refused(testbed, PLACE)?;
    place.running.stop()?;
    let objects = rendered(testbed, PLACE, PART)?;
    let hub = [("namespaces", "get"), ("manifestworks/status", "patch"), ("manifestworks", "patch"), DELETE];
    let read = ["manifestworks", "managedclusters"];
    let read = read.into_iter().flat_map(|resource| ["list", "watch"].map(|verb| (resource, verb)));
    let member = ["get", "create", "update", "patch", "delete"].map(|verb| ("clustergateways/proxy", verb));
    for (number, (resource, verb)) in read.chain(hub).chain(member).enumerate() {
        all_to_do(&place, number + 2)?;
        let mut running = started_without(testbed, PLACE, &objects, (resource, verb))?;
        let what = format!("that {verb} on {resource} is missed");
        wait::until_true(&what, 2 * SOON, || is_refused_to(testbed, PLACE, verb, resource))?;
        running.stop()?;
    }
    crate::rights::grant(testbed, PLACE, &objects)?;
    place.running.restart_stopped()?;
    place.delete(&format!("{WORKS} --all -n {CLUSTER} --wait=false"))?;
    wait_end_within(&testbed.hub.server, &format!("{WORKS} -n {CLUSTER}"), 3 * SOON)?;
    place.end(&[])
}

/// Has an object made, one updated, one applied, and one removed; a work begin, and one end by
/// itself.
fn all_to_do(place: &Place<'_>, number: usize) -> Result<()> {
    let map = |name: &str, value: &str| config_map(CLUSTER, name, &json!({"a": value}));
    let changes = format!("{number}");
    let manifests = [map("updated", &changes), map("applied", &changes), map(&format!("made-{number}"), "x")];
    let apply = json!({"type": "ServerSideApply", "serverSideApply": {"force": true}});
    place.work("app", &manifests, &json!({"manifestConfigs": [strategy(CLUSTER, "applied", &apply)]}))?;
    place.work(&format!("new-{number}"), &[map(&format!("new-{number}"), "x")], &json!({}))?;
    let brief = format!("brief-{number}");
    place.work(&brief, &[map(&brief, "x")], &json!({"deleteOption": {"ttlSecondsAfterFinished": 1}}))?;
    let now = place.member().read("namespace default")?["metadata"]["creationTimestamp"].clone();
    let complete = json!({"type": "Complete", "status": "True", "reason": "ByHand", "message": "",
        "lastTransitionTime": now});
    let line = format!("{WORKS} {brief} -n {CLUSTER} --subresource=status");
    place.testbed.hub.server.patch(&line, &json!({"status": {"conditions": [complete]}})).map(drop)
}

/// Waits until that is so.
fn all_done(place: &Place<'_>, number: usize) -> Result<()> {
    place.wait_applied("app")?;
    place.wait_applied(&format!("new-{number}"))?;
    place.wait_gone(&format!("brief-{number}"))?;
    for name in ["updated", "applied"] {
        let found = place.object("configmap", name)?;
        ensure!(found["data"]["a"] == format!("{number}"), "{found}");
    }
    ensure!(place.object("configmap", &format!("made-{number}"))?.is_object());
    let before =
        number.checked_sub(1).map(|before| place.object("configmap", &format!("made-{before}"))).transpose()?;
    ensure!(before.unwrap_or(Value::Null).is_null(), "what is no longer wanted is there");
    ensure!(condition(&place.read("app")?["status"], "Applied")["status"] == "True");
    Ok(())
}
