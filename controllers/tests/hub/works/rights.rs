//! Each right that the chart grants is used, and the part needs no others.

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};

use super::{Place, config_map, strategy};
use crate::fixture::{SOON, condition};
use crate::part::Part;
use crate::rights::used::{events, none_idle, right};
use crate::rights::{grant, is_refused_to, rendered, started_without};

/// The controllers' own namespace: refusals are in a log that all tests share.
const PLACE: &str = "audited-works";
const PART: &str = "controllers.parts.manifestworks=true";
const CLUSTER: &str = "works-entitled";
/// Without this right, objects that are no longer wanted stay.
const DELETE: (&str, &str) = ("clustergateways/proxy", "delete");

pub fn used(testbed: &Testbed) -> Result<()> {
    let mark = testbed.audit.mark()?;
    let mut place = Place { part: Part::install(testbed, PLACE, PART, vec![super::alone()])?, cluster: CLUSTER };
    place.register(CLUSTER)?;
    place.deliver(Some("push"))?;
    testbed.member.server.apply(&[crate::fixture::namespace(CLUSTER)])?;
    all_to_do(&place, 0)?;
    all_done(&place, 0)?;
    all_to_do(&place, 1)?;
    all_done(&place, 1)?;
    let objects = rendered(testbed, PLACE, PART)?;
    // A single work is read only when the memory for works is full, which it is not here.
    let beside = events().into_iter().chain([right("work.open-cluster-management.io", "manifestworks", "get")]);
    none_idle(testbed, PLACE, &objects, mark, &beside.collect())?;
    place.running.stop()?;

    let mut running = started_without(testbed, PLACE, &objects, DELETE)?;
    all_to_do(&place, 2)?;
    wait::until_true("that it is missed", 2 * SOON, || is_refused_to(testbed, PLACE, DELETE.1, DELETE.0))?;
    ensure!(place.object("configmap", "made-1")?.is_object(), "the hub refused its end");
    place.wait_applied("new-2")?;
    running.stop()?;
    grant(testbed, PLACE, &objects)?;
    place.running.restart_stopped()?;
    all_done(&place, 2)?;
    place.end(&["app", "new-0", "new-1", "new-2"])
}

/// Gives the part an object to create, one to update, one to apply, and one to remove; and a new
/// work.
fn all_to_do(place: &Place<'_>, number: usize) -> Result<()> {
    let map = |name: &str, value: &str| config_map(CLUSTER, name, &json!({"a": value}));
    let changes = format!("{number}");
    let manifests = [map("updated", &changes), map("applied", &changes), map(&format!("made-{number}"), "x")];
    let apply = json!({"type": "ServerSideApply", "serverSideApply": {"force": true}});
    place.work("app", &manifests, &json!({"manifestConfigs": [strategy(CLUSTER, "applied", &apply)]}))?;
    place.work(&format!("new-{number}"), &[map(&format!("new-{number}"), "x")], &json!({}))
}

/// Waits until all of it is done.
fn all_done(place: &Place<'_>, number: usize) -> Result<()> {
    place.wait_applied("app")?;
    place.wait_applied(&format!("new-{number}"))?;
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
