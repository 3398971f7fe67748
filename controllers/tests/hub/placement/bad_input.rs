//! Errors in a Placement, or in what it depends on, are reported on that Placement and affect no
//! other.

use anyhow::{Context as _, Result, ensure};
use hub_tests::testbed::Testbed;
use serde_json::{Value, json};

use super::{GROUP, Place, cluster};
use crate::fixture::{apply, namespace};

/// The specs among these that the kind's schema refuses.
const REFUSED: [&str; 3] = ["size", "size-none", "size-most"];

/// Specs that cannot be evaluated, and what their message must contain.
fn wrong() -> Vec<(&'static str, Value, &'static str)> {
    let cel =
        |text: &str| json!({"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": [text]}}}]});
    let coordinate = |coordinate: Value| json!({"prioritizerPolicy": {"mode": "Exact", "configurations": [{"scoreCoordinate": coordinate, "weight": 1}]}});
    let label =
        json!({"requiredClusterSelector": {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}});
    vec![
        ("equal", json!({"tolerations": [{"operator": "Equal", "value": "x"}]}), "operator must be Exists"),
        ("exists", json!({"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]}), "value should be empty"),
        ("mode", json!({"prioritizerPolicy": {"mode": "Loud"}}), "mode: Loud"),
        ("prioritizer", coordinate(json!({"type": "BuiltIn", "builtIn": "Luck"})), "Luck"),
        ("add-on", coordinate(json!({"type": "AddOn"})), "addOn should not be empty"),
        ("syntax", cel("1 +"), "compilation failed"),
        ("operator", json!({"predicates": [label]}), "Like"),
        ("size", json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "abc"}}}), "abc"),
    ]
}

/// Sizes and counts that mean no limit, or that mean nothing.
fn odd() -> Vec<(&'static str, Value)> {
    let size = |size: Value| json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": size}}});
    vec![("size-none", size(json!("0%"))), ("size-most", size(json!("200%"))), ("size-below", size(json!(-1)))]
}

pub fn answered(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "placement-bad")?;
    // Two sets with a cluster in both.
    place.sets(&["bad"])?;
    let overlapping = json!({"apiVersion": format!("{GROUP}/v1beta2"), "kind": "ManagedClusterSet",
        "metadata": {"name": "bad-too"}, "spec": {"clusterSelector": {"selectorType": "LabelSelector",
            "labelSelector": {"matchLabels": {"bad": "too"}}}}});
    let mut tainted = cluster("bad2", "bad", &json!({"bad": "too"}));
    tainted["spec"]["taints"] = json!([{"key": "old", "effect": "NoSelect"}]);
    apply(
        testbed,
        &[overlapping, super::binding(place.name, "bad-too"), cluster("bad1", "bad", &json!({"bad": "too"})), tainted],
    )?;
    // Before the controllers see its sets, a Placement has a decision without clusters; it keeps
    // that decision object.
    place.place("good", &json!({}))?;
    place.wait_chosen("good", &["bad1"])?;
    for (name, spec, message) in wrong() {
        if is_refused(&place, name, &spec)? {
            continue;
        }
        let told = place.wait_condition(name, "PlacementMisconfigured", "True/Misconfigured")?;
        ensure!(told.contains(message), "{name}: {told}");
        ensure!(place.decisions(name)?.is_empty(), "{name} has decisions");
    }
    for (name, spec) in odd() {
        if !is_refused(&place, name, &spec)? {
            place.wait_chosen(name, &["bad1"])?;
            ensure!(place.decisions(name)?.len() == 1, "{name} is one group");
        }
    }
    // Expressions that would run too long: each expression has a limit, and so has the run.
    let costly = "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, \
        [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a+b+c+d+e+f > 0))))))";
    let costly = json!({"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": [costly]}}}]});
    place.place("costly", &costly)?;
    place.wait_condition("costly", "PlacementSatisfied", "False/NoManagedClusterMatched")?;
    let string = json!({"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": ["'yes'"]}}}]});
    place.place("string", &string)?;
    place.wait_condition("string", "PlacementSatisfied", "False/NoManagedClusterMatched")?;
    place.place("none", &json!({"numberOfClusters": 0}))?;
    place.wait_condition("none", "PlacementSatisfied", "False/NoManagedClusterMatched")?;
    // A taint without a time is older than any toleration with seconds; a toleration without
    // seconds still tolerates it.
    let tolerated = |more: Value| {
        let mut toleration = json!({"key": "old", "operator": "Exists"});
        toleration.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        json!({"tolerations": [toleration]})
    };
    place.place("tolerant", &tolerated(json!({})))?;
    place.wait_chosen("tolerant", &["bad1", "bad2"])?;
    place.place("impatient", &tolerated(json!({"tolerationSeconds": 3600})))?;
    place.wait_chosen("impatient", &["bad1"])?;
    let long = "p".repeat(64);
    place.place(&long, &json!({}))?;
    let told = place.wait_condition(&long, "PlacementMisconfigured", "True/Misconfigured")?;
    ensure!(told.contains("metadata.name has more than 63"), "{told}");
    outside(&place)?;
    place.end(&["bad1", "bad2"], &["bad", "bad-too"])
}

/// Whether the kind's schema refuses a spec, which must be so for those in [`REFUSED`]; the hub
/// must take the others.
fn is_refused(place: &Place<'_>, name: &str, spec: &Value) -> Result<bool> {
    let answer = place.place(name, spec);
    if !REFUSED.contains(&name) {
        return answer.with_context(|| format!("{name} is for a condition to refuse")).map(|()| false);
    }
    let why = format!("{:#}", answer.err().with_context(|| format!("{name} is for the schema to refuse"))?);
    ensure!(why.contains("clustersPerDecisionGroup") && why.contains("should match"), "{name}: {why}");
    Ok(true)
}

/// The kind's schema refuses a score outside the range. A score that an older schema accepted
/// counts, with a warning: unit tests cover that.
fn outside(place: &Place<'_>) -> Result<()> {
    let score = json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "AddOnPlacementScore",
        "metadata": {"name": "loud", "namespace": "bad1"}});
    apply(place.testbed, &[namespace("bad1"), score])?;
    let loud = json!({"scores": [{"name": "s", "value": 1000}]});
    let answer = place.status("addonplacementscore loud -n bad1", &loud);
    let why = format!("{:#}", answer.err().context("the schema has no bound")?);
    ensure!(why.contains("less than or equal to 100"), "{why}");
    Ok(())
}
