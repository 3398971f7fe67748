//! Each right that the chart grants is used, and the part needs no others.

use anyhow::{Result, ensure};
use http::Method;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};

use super::{PART, Place, WORK, all_at_once};
use crate::fixture::{SOON, apply};
use crate::rights::used::{events, none_idle};
use crate::rights::{NAME, grant, is_refused_to, rendered, started_without};

pub fn used(testbed: &Testbed) -> Result<()> {
    let mark = testbed.audit.mark()?;
    let mut place = Place::start(testbed, "audited-sets")?;
    let clusters = ["sets-less1"];
    place.clusters(&clusters)?;
    place.choose("p", &[("", &clusters)])?;
    place.set("app", "1", &all_at_once("p"))?;
    place.wait_works("app", &clusters)?;
    place.set("app", "2", &all_at_once("p"))?;
    place.wait_data("app", "2", &clusters)?;
    // A work of a Placement that the set no longer names.
    let labels =
        json!({format!("{WORK}/manifestworkreplicaset"): "audited-sets.app", format!("{WORK}/placementname"): "x"});
    let stray = json!({"apiVersion": format!("{WORK}/v1"), "kind": "ManifestWork",
        "metadata": {"name": "stray", "namespace": clusters[0], "labels": labels},
        "spec": {"workload": {"manifests": []}}});
    apply(testbed, &[stray])?;
    place.wait_end(&format!("manifestwork stray -n {}", clusters[0]))?;
    let objects = rendered(testbed, place.name, PART)?;
    none_idle(testbed, place.name, &objects, mark, &events())?;
    place.running.stop()?;

    let without = ("manifestworks", "patch");
    let mut running = started_without(testbed, place.name, &objects, without)?;
    place.set("app", "3", &all_at_once("p"))?;
    wait::until_true("that it is missed", SOON, || is_refused_to(testbed, place.name, without.1, without.0))?;
    ensure!(place.with_data("app", "2")? == clusters, "the hub refused the change");
    running.stop()?;
    grant(testbed, place.name, &objects)?;
    place.running.restart_stopped()?;
    place.wait_data("app", "3", &clusters)?;
    place.end()
}

/// The policy that limits ocm-registration's rights lets works of sets through.
pub fn limited(testbed: &Testbed) -> Result<()> {
    let place = Place::among_clusters(testbed, "sets-limited", PART)?;
    let objects = rendered(testbed, place.name, &format!("{PART},controllers.ocmRegistration.enabled=true"))?;
    let is_limit = |object: &&Value| {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        text("/kind").starts_with("ValidatingAdmissionPolicy") && text("/metadata/name").ends_with("-limits")
    };
    let policies: Vec<Value> = objects.iter().filter(is_limit).cloned().collect();
    ensure!(policies.len() == 2, "a policy and its binding: {policies:?}");
    apply(testbed, &policies)?;
    place.clusters(&["sets-limited1"])?;
    let (hub, me) = (testbed.hub.server.kubectl(), format!("system:serviceaccount:{}:{NAME}", place.name));
    let other = json!({"apiVersion": format!("{WORK}/v1"), "kind": "ManifestWork",
        "metadata": {"name": "other", "namespace": "sets-limited1"}, "spec": {"workload": {"manifests": []}}});
    wait::until_true("that the policy is in force", SOON, || {
        let path = format!("/apis/{WORK}/v1/namespaces/sets-limited1/manifestworks?dryRun=All&fieldValidation=Strict");
        let answer = hub.send(&Method::POST, &path, &[("impersonate-user", &*me)], &other)?;
        Ok(answer.text().contains("write no works but those of ManifestWorkReplicaSets"))
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
