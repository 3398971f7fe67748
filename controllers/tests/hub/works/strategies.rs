//! How objects get their wanted state, and keep it.

use std::time::Duration;

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Place, condition, config_map, strategy};
use crate::fixture::{SOON, event};

/// A change by hand, as by a person with kubectl.
fn change(place: &Place<'_>, name: &str, value: &str) -> Result<()> {
    place.member().patch(&format!("configmap {name} -n {}", place.cluster), &json!({"data": {"a": value}})).map(drop)
}

fn wait_data(place: &Place<'_>, name: &str, expected: &Value) -> Result<()> {
    wait_data_within(SOON, place, name, expected)
}

fn wait_data_within(limit: Duration, place: &Place<'_>, name: &str, expected: &Value) -> Result<()> {
    wait::until(&format!("{name} to have {expected}"), limit, || {
        let found = place.object("configmap", name)?;
        ensure!(found["data"] == *expected, "{found}");
        Ok(())
    })
}

pub fn each(testbed: &Testbed) -> Result<()> {
    let cluster = "works-strategies";
    let place = Place::start(testbed, cluster)?;
    let names = ["update", "once", "server", "seen"];
    let manifests = names.map(|name| config_map(cluster, name, &json!({"a": "wanted"})));
    let of = |name: &str, kind: &Value| strategy(cluster, name, kind);
    let configs = json!({"manifestConfigs": [of("once", &json!({"type": "CreateOnly"})),
        of("server", &json!({"type": "ServerSideApply"})), of("seen", &json!({"type": "ReadOnly"}))]});
    place.work("each", &manifests, &configs)?;
    place.wait("each", "Available", "False/ResourcesNotAvailable")?;
    place.wait_manifest("each", 3, "Available", "False/ResourceNotAvailable")?;
    ensure!(place.object("configmap", "seen")?.is_null(), "what is only read was made");
    let seen = config_map(cluster, "seen", &json!({"a": "somebody's"}));
    testbed.member.server.apply(std::slice::from_ref(&seen))?;
    place.wait("each", "Available", "True/ResourcesAvailable")?;
    for name in ["update", "once", "server", "seen"] {
        change(&place, name, "by hand")?;
    }
    wait_data(&place, "update", &json!({"a": "wanted"}))?;
    // The field now belongs to kubectl: without force, the part does not fight.
    let told = place.wait_manifest("each", 2, "Applied", "False/AppliedManifestFailed")?;
    ensure!(told.contains("conflict with \"kubectl-patch\" using v1: .data.a"), "{told}");
    wait_data(&place, "once", &json!({"a": "by hand"}))?;
    wait_data(&place, "server", &json!({"a": "by hand"}))?;
    wait_data(&place, "seen", &json!({"a": "by hand"}))?;
    ensure!(place.object("configmap", "seen")?["metadata"]["ownerReferences"].is_null(), "what is only read is owned");
    // With force, it takes the field back.
    let forced = json!({"type": "ServerSideApply", "serverSideApply": {"force": true}});
    place.work(
        "each",
        &manifests,
        &json!({"manifestConfigs": [of("server", &forced), of("seen", &json!({"type": "ReadOnly"}))]}),
    )?;
    wait_data(&place, "server", &json!({"a": "wanted"}))?;
    wait_data(&place, "once", &json!({"a": "wanted"}))?;
    place.wait_applied("each")?;
    // A deleted object is recreated; an object that is only read is reported as missing.
    place.member().delete(&format!("configmap update seen -n {cluster}"))?;
    wait_data(&place, "update", &json!({"a": "wanted"}))?;
    place.wait_manifest("each", 3, "Available", "False/ResourceNotAvailable")?;
    testbed.member.server.apply(&[seen])?;
    place.wait_manifest("each", 3, "Available", "True/ResourceAvailable")?;
    bad_manager(&place)?;
    place.delete(&format!("{} each -n {cluster}", super::WORKS))?;
    ensure!(!place.object("configmap", "seen")?.is_null(), "what was only read is deleted");
    place.end(&["manager"])
}

fn bad_manager(place: &Place<'_>) -> Result<()> {
    let foreign =
        json!({"type": "ServerSideApply", "serverSideApply": {"fieldManager": "work-agent-x", "force": false}});
    let config = strategy(place.cluster, "managed", &foreign);
    let map = config_map(place.cluster, "managed", &json!({"a": "b"}));
    place.work("manager", &[map], &json!({"manifestConfigs": [config]}))?;
    place.wait_applied("manager")?;
    let fields = place.object("configmap", "managed")?["metadata"]["managedFields"].clone();
    ensure!(fields.to_string().contains("work-agent-x"), "{fields}");
    Ok(())
}

pub fn ignored(testbed: &Testbed) -> Result<()> {
    let cluster = "works-ignored";
    let place = Place::start(testbed, cluster)?;
    let apply = |condition: &str| {
        json!({"type": "ServerSideApply", "serverSideApply": {"force": true,
            "ignoreFields": [{"condition": condition, "jsonPaths": [".data.a"]}]}})
    };
    let manifests = ["present", "changed"].map(|name| config_map(cluster, name, &json!({"a": "wanted", "b": "1"})));
    let configs = |condition: &str| {
        json!({"manifestConfigs": [strategy(cluster, "present", &apply("OnSpokePresent")),
            strategy(cluster, "changed", &apply(condition))]})
    };
    place.work("ignoring", &manifests, &configs("OnSpokeChange"))?;
    place.wait_applied("ignoring")?;
    wait_data(&place, "present", &json!({"a": "wanted", "b": "1"}))?;
    for name in ["present", "changed"] {
        change(&place, name, "by hand")?;
    }
    // Another change of the work leaves the field alone.
    let other = ["present", "changed"].map(|name| config_map(cluster, name, &json!({"a": "wanted", "b": "2"})));
    place.work("ignoring", &other[..1], &configs("OnSpokeChange"))?;
    wait_data(&place, "present", &json!({"a": "by hand", "b": "2"}))?;
    let broken = json!({"type": "ServerSideApply", "serverSideApply": {
        "ignoreFields": [{"condition": "OnSpokePresent", "jsonPaths": [".data["]}]}});
    let configs = json!({"manifestConfigs": [strategy(cluster, "present", &broken)]});
    place.work("ignoring", &other[..1], &configs)?;
    place.wait_manifest("ignoring", 0, "Applied", "False/AppliedManifestSSAIgnoreFieldError")?;
    place.end(&["ignoring"])
}

pub fn contested(testbed: &Testbed) -> Result<()> {
    let cluster = "works-contested";
    let place = Place::start(testbed, cluster)?;
    place.work("contested", &[config_map(cluster, "a", &json!({"a": "wanted"}))], &json!({}))?;
    place.wait_applied("contested")?;
    let mut waited = Vec::new();
    let mut contest = |round: usize| {
        // Before the change, which the controllers may see before we have the answer to it.
        let begin = Instant::now();
        change(&place, "a", &format!("by hand {round}"))?;
        wait_data_within(3 * SOON, &place, "a", &json!({"a": "wanted"}))?;
        waited.push(begin.elapsed());
        anyhow::Ok(waited.clone())
    };
    (0..2).try_for_each(|round| contest(round).map(drop))?;
    // The repairs come at once, after 1 s, and after 5 s.
    let waited = contest(2)?;
    ensure!(waited[2] > Duration::from_secs(3) && waited[2] > waited[0], "{waited:?}");
    place.wait_applied("contested")?;
    ensure!(event(testbed, cluster, "contested", "ObjectContested").is_err(), "three are no contest");
    // After 30 s, with a report of the other writer.
    let waited = contest(3)?;
    ensure!(waited[3] > Duration::from_secs(20), "{waited:?}");
    let note = wait::until("an Event", SOON, || event(testbed, cluster, "contested", "ObjectContested"))?;
    let told = format!("kubectl-patch changes or deletes configmaps {cluster}/a of cluster {cluster} each time");
    ensure!(note.contains(&told), "{note}");
    let contested = place.running.metric("cluster_gateway_delivery_contested_objects", "")?;
    ensure!(contested > 0.5, "it is not counted");
    place.end(&["contested"])
}

pub fn filled(testbed: &Testbed) -> Result<()> {
    let cluster = "works-filled";
    let mut place = Place::start(testbed, cluster)?;
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": cluster},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    place.work("filled", std::slice::from_ref(&service), &json!({}))?;
    place.wait_applied("filled")?;
    let before = place.object("service", "web")?;
    ensure!(before["spec"]["clusterIP"].is_string(), "{before}");
    // This change leads to a pass without a write.
    place.member().annotate(&format!("service web -n {cluster} touched=yes"))?;
    let touched = place.object("service", "web")?;
    let mut labelled = service;
    labelled["metadata"]["labels"] = json!({"a": "b"});
    place.work("filled", &[labelled], &json!({}))?;
    wait::until("the label", SOON, || {
        let found = place.object("service", "web")?;
        ensure!(found["metadata"]["labels"]["a"] == "b", "{found}");
        Ok(())
    })?;
    let after = place.object("service", "web")?;
    ensure!(after["spec"] == before["spec"] && after["metadata"]["annotations"]["touched"] == "yes", "{after}");
    ensure!(touched["metadata"]["uid"] == after["metadata"]["uid"]);
    let updates = place.running.metric("cluster_gateway_delivery_actions_total", "action=\"update\"")?;
    ensure!((updates - 1.0).abs() < 0.1, "{updates} updates for one change");
    wait::until("that it is told", SOON, || {
        let work = place.read("filled")?;
        let told = condition(&work["status"], "Applied")["observedGeneration"].clone();
        ensure!(told == work["metadata"]["generation"], "{work}");
        Ok(())
    })?;
    // What is added while the part does not run is removed, and what the member filled in stays.
    place.running.stop()?;
    let added = json!({"spec": {"publishNotReadyAddresses": true}});
    place.member().patch(&format!("service web -n {cluster}"), &added)?;
    place.running.restart_stopped()?;
    wait::until("that it is as it was", SOON, || {
        let found = place.object("service", "web")?;
        ensure!(found["spec"] == after["spec"], "{found}");
        Ok(())
    })?;
    place.end(&["filled"])
}
