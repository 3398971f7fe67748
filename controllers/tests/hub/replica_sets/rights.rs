//! The chart grants no right that the part would not miss.

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};

use super::{PART, Place, WORK, all_at_once};
use crate::fixture::{SOON, apply};
use crate::rights::{NAME, is_refused_to, rendered, started_without};

pub fn less(testbed: &Testbed) -> Result<()> {
    let mut place = Place::start(testbed, "sets-less")?;
    place.clusters(&["sets-less1"])?;
    place.choose("p", &[("", &["sets-less1"])])?;
    place.set("app", "0", &all_at_once("p"))?;
    place.wait_works("app", &["sets-less1"])?;
    place.running.stop()?;
    let objects = rendered(testbed, place.name, PART)?;
    let read = ["manifestworkreplicasets", "manifestworks", "placements", "placementdecisions", "leases"];
    let read = read.into_iter().flat_map(|resource| ["list", "watch"].map(|verb| (resource, verb)));
    let write = ["create", "patch", "delete"].map(|verb| ("manifestworks", verb));
    let told = ["manifestworkreplicasets", "manifestworkreplicasets/status"].map(|resource| (resource, "patch"));
    for (number, (resource, verb)) in read.chain(write).chain(told).enumerate() {
        all_to_do(&place, number)?;
        let mut running = started_without(testbed, place.name, &objects, (resource, verb))?;
        let what = format!("that {verb} on {resource} is missed");
        wait::until_true(&what, SOON, || is_refused_to(testbed, place.name, verb, resource))?;
        running.stop()?;
    }
    place.running.restart_stopped()?;
    place.end()
}

/// Has a set begin, a work patched, and one removed.
fn all_to_do(place: &Place<'_>, number: usize) -> Result<()> {
    let labels =
        json!({format!("{WORK}/manifestworkreplicaset"): "sets-less.app", format!("{WORK}/placementname"): "x"});
    let stray = json!({"apiVersion": format!("{WORK}/v1"), "kind": "ManifestWork",
        "metadata": {"name": format!("stray-{number}"), "namespace": "sets-less1", "labels": labels},
        "spec": {"workload": {"manifests": []}}});
    apply(place.testbed, &[stray])?;
    place.set("app", &format!("{number}-changed"), &all_at_once("p"))?;
    place.set(&format!("new-{number}"), "1", &all_at_once("p"))
}

/// The policy that keeps ocm-registration's rights from being used lets works of sets through.
pub fn limited(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "sets-limited")?;
    let objects = rendered(testbed, place.name, &format!("{PART},controllers.ocmRegistration.enabled=true"))?;
    let is_limit = |object: &&Value| {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        text("/kind").starts_with("ValidatingAdmissionPolicy") && text("/metadata/name").ends_with("-limits")
    };
    let policies: Vec<Value> = objects.iter().filter(is_limit).cloned().collect();
    ensure!(policies.len() == 2, "a policy and its binding: {policies:?}");
    apply(testbed, &policies)?;
    place.clusters(&["sets-limited1"])?;
    let me = format!("--as=system:serviceaccount:{}:{NAME}", place.name);
    let other = json!({"apiVersion": format!("{WORK}/v1"), "kind": "ManifestWork",
        "metadata": {"name": "other", "namespace": "sets-limited1"}, "spec": {"workload": {"manifests": []}}});
    wait::until_true("that the policy is in force", SOON, || {
        let words = ["create", "--dry-run=server", "-f", "-", &me];
        let output = testbed.hub.server.kubectl().args(words).stdin(other.to_string()).run()?;
        Ok(output.stderr.contains("write no works but those of ManifestWorkReplicaSets"))
    })?;
    place.choose("p", &[("", &["sets-limited1"])])?;
    place.set("app", "1", &all_at_once("p"))?;
    place.wait_works("app", &["sets-limited1"])?;
    place.set("app", "2", &all_at_once("p"))?;
    place.wait_data("app", "2", &["sets-limited1"])?;
    for policy in &policies {
        let text = |pointer: &str| policy.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        place.delete(&format!("{} {}", text("/kind"), text("/metadata/name")))?;
    }
    place.end()
}
