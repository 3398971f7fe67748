//! Feedback of values of each type.

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};

use super::Place;
use crate::fixture::SOON;

const SYNCED: &str = "StatusFeedbackSynced";

/// Puts a Service with two ports, and a feedback rule with these paths.
fn put(place: &Place<'_>, paths: &[(&str, &str)]) -> Result<()> {
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": place.cluster, "annotations": {"long": "x".repeat(1100)}},
        "spec": {"selector": {"app": "web"}, "publishNotReadyAddresses": true,
            "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}});
    let paths: Vec<Value> = paths.iter().map(|(name, path)| json!({"name": name, "path": path})).collect();
    let config = json!({"resourceIdentifier":
        {"group": "", "resource": "services", "namespace": place.cluster, "name": "web"},
        "feedbackRules": [{"type": "JSONPaths", "jsonPaths": paths}]});
    place.work("told", &[service], &json!({"manifestConfigs": [config]}))
}

/// Waits until the hub has these values.
fn wait_values(place: &Place<'_>, expected: &Value) -> Result<()> {
    wait::until(&format!("{expected} to be told"), SOON, || {
        let work = place.read("told")?;
        let told = &work["status"]["resourceStatus"]["manifests"][0];
        ensure!(told["statusFeedback"]["values"] == *expected, "{told}");
        Ok(())
    })
}

fn value(name: &str, kind: &str, field: &str, value: &Value) -> Value {
    json!({"name": name, "fieldValue": {"type": kind, field: value}})
}

const SCALARS: [(&str, &str); 4] = [
    ("port", ".spec.ports[0].port"),
    ("open", ".spec.publishNotReadyAddresses"),
    ("kind", ".spec.type"),
    ("missing", ".spec.loadBalancerClass"),
];

fn scalars() -> Vec<Value> {
    vec![
        value("port", "Integer", "integer", &json!(80)),
        value("open", "Boolean", "boolean", &json!(true)),
        value("kind", "String", "string", &json!("ClusterIP")),
    ]
}

pub fn scalar(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "works-scalars")?;
    put(&place, &SCALARS)?;
    wait_values(&place, &scalars().into())?;
    place.wait_manifest("told", 0, SYNCED, "True/StatusFeedbackSynced")?;
    // A path to a list is reported as an error, and the other values are still reported.
    put(&place, &[&SCALARS[..], &[("list", ".spec.ports"), ("first", ".spec.ports[*].port")]].concat())?;
    let told = place.wait_manifest("told", 0, SYNCED, "False/StatusFeedbackSyncFailed")?;
    ensure!(told.contains("the type []interface {} of the value for list is not found"), "{told}");
    wait_values(&place, &[scalars(), vec![value("first", "Integer", "integer", &json!(80))]].concat().into())?;
    place.end(&["told"])
}

pub fn raw(testbed: &Testbed) -> Result<()> {
    let place = Place::with(testbed, "works-raw", ",controllers.manifestworks.rawFeedback=true")?;
    let paths = [("selector", ".spec.selector"), ("all", ".spec.ports[*].port"), ("none", ".spec.nothing")];
    put(&place, &[&SCALARS[..], &paths].concat())?;
    let json = |name: &str, text: &str| value(name, "JsonRaw", "jsonRaw", &json!(text));
    let raw = vec![json("selector", r#"{"app":"web"}"#), json("all", "[80,81]")];
    wait_values(&place, &[scalars(), raw.clone()].concat().into())?;
    place.wait_manifest("told", 0, SYNCED, "True/StatusFeedbackSynced")?;
    // Longer than the API allows.
    put(&place, &[&SCALARS[..], &paths, &[("long", ".metadata.annotations")]].concat())?;
    let told = place.wait_manifest("told", 0, SYNCED, "False/StatusFeedbackSyncFailed")?;
    ensure!(told.contains("for name long is larger than the maximum"), "{told}");
    wait_values(&place, &[scalars(), raw].concat().into())?;
    place.end(&["told"])
}
