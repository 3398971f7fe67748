//! Each right that the chart grants is used, and the part needs no others.

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};

use super::{GROUP, Place, WORKS, config_map, strategy};
use crate::fixture::{SOON, condition};
use crate::part::Part;
use crate::rights::used::{events, none_idle};
use crate::rights::{grant, is_refused_to, rendered, started_without};

/// The controllers' own namespace: refusals are in a log that all tests share.
const PLACE: &str = "audited-works";
const PART: &str = "controllers.parts.manifestworks=true";
const CLUSTER: &str = "works-entitled";
/// Bytes of a work, and so many of these that a cluster's room of 16 MiB has no place for all.
const HEAVY: usize = 480 * 1024;
const HEAVY_WORKS: u32 = 40;
/// Without it, what is no longer wanted stays.
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
    read_one_by_one(&place)?;
    let objects = rendered(testbed, PLACE, PART)?;
    none_idle(testbed, PLACE, &objects, mark, &events())?;
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

/// More works than are kept in memory: the rest is read when its turn comes. They only look, so
/// that the member has nothing to keep.
fn read_one_by_one(place: &Place<'_>) -> Result<()> {
    let work = |number: u32| {
        let name = format!("heavy-{number}");
        let spec = json!({
            "workload": {"manifests": [config_map(CLUSTER, &name, &json!({"a": "x".repeat(HEAVY)}))]},
            "manifestConfigs": [strategy(CLUSTER, "*", &json!({"type": "ReadOnly"}))]});
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ManifestWork",
            "metadata": {"name": name, "namespace": CLUSTER, "labels": {"heavy": "yes"}}, "spec": spec})
    };
    let applied = || place.running.metric("cluster_gateway_delivery_objects", "state=\"applied\"");
    let before = applied()?;
    place.testbed.hub.server.create(&(0..HEAVY_WORKS).map(work).collect::<Vec<_>>())?;
    wait::until("some to be read one by one", SOON, || {
        let unkept = place.running.metric("cluster_gateway_delivery_unkept_works", "")?;
        ensure!(unkept >= 1.0, "{unkept} are not kept");
        Ok(())
    })?;
    wait::until("all to be looked at", 3 * SOON, || {
        let told = applied()? - before;
        ensure!(told > f64::from(HEAVY_WORKS) - 0.5, "{told} so far");
        Ok(())
    })?;
    let heavy = format!("{WORKS} -n {CLUSTER} -l heavy=yes");
    place.delete(&format!("{heavy} --wait=false"))?;
    place.wait_end(&heavy)
}

/// Has an object made, one updated, one applied, and one removed; and a work begin.
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
