//! The row of a node.

use serde_json::Value;

use super::{Column, NAME, elements, or_none, shown, wide};

pub(super) const COLUMNS: [Column; 10] = [
    NAME,
    shown("Status"),
    shown("Roles"),
    shown("Age"),
    shown("Version"),
    wide("Internal-IP"),
    wide("External-IP"),
    wide("OS-Image"),
    wide("Kernel-Version"),
    wide("Container-Runtime"),
];

const ROLE: &str = "node-role.kubernetes.io/";

pub(super) fn cells(body: &Value, name: Value, age: Value) -> Vec<Value> {
    let info = &body["status"]["nodeInfo"];
    vec![
        name,
        status(body).into(),
        roles(body).into(),
        age,
        info["kubeletVersion"].clone(),
        address(body, "InternalIP"),
        address(body, "ExternalIP"),
        info["osImage"].clone(),
        info["kernelVersion"].clone(),
        info["containerRuntimeVersion"].clone(),
    ]
}

fn status(body: &Value) -> String {
    let ready = elements(&body["status"]["conditions"]).iter().find(|condition| condition["type"] == "Ready");
    let ready = match ready.map(|condition| condition["status"] == "True") {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    };
    let cordoned = if body["spec"]["unschedulable"] == true { ",SchedulingDisabled" } else { "" };
    format!("{ready}{cordoned}")
}

fn roles(body: &Value) -> String {
    let labels = body["metadata"]["labels"].as_object();
    let roles: Vec<&str> = labels.into_iter().flatten().filter_map(|(key, _)| key.strip_prefix(ROLE)).collect();
    if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") }
}

fn address(body: &Value, kind: &str) -> Value {
    let found = elements(&body["status"]["addresses"]).iter().find(|address| address["type"] == kind);
    or_none(found.map_or(&Value::Null, |address| &address["address"]))
}
