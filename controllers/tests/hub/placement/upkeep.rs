//! Decisions follow what they depend on, and are restored after changes by others.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::watched::Watched;
use super::{GROUP, Place, binding, cluster};
use crate::fixture::{SOON, apply, print};

/// Time for decisions to follow a change.
const FOLLOWED: Duration = Duration::from_secs(1);
const MISCONFIGURED: &str = "PlacementMisconfigured";

pub fn toleration(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "placement-toleration")?;
    place.sets(&["toleration"])?;
    apply(testbed, &["toleration1", "toleration2"].map(|name| cluster(name, "toleration", &json!({}))))?;
    let tolerated = json!([{"key": "down", "operator": "Exists", "tolerationSeconds": 5}]);
    place.place("one", &json!({"clusterSets": ["toleration"], "tolerations": tolerated}))?;
    place.wait_chosen("one", &["toleration1", "toleration2"])?;
    let added = k8s_openapi::jiff::Timestamp::now();
    let taint =
        json!({"key": "down", "effect": "NoSelect", "timeAdded": added.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()});
    place.patch("managedcluster toleration1", &json!({"spec": {"taints": [taint]}}))?;
    // The taint's time has whole seconds.
    let end = added.as_second() + 5;
    wait::until("its end", SOON, || {
        let chosen = place.chosen("one")?;
        ensure!(chosen == ["toleration2"], "{chosen:?}");
        Ok(())
    })?;
    let late = k8s_openapi::jiff::Timestamp::now().as_millisecond() - end * 1000;
    ensure!((0..1000).contains(&late), "{late} ms after the end");
    place.end(&["toleration1", "toleration2"], &["toleration"])
}

pub fn put_back(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "placement-put-back")?;
    place.sets(&["put-back"])?;
    apply(testbed, &["put-back1", "put-back2"].map(|name| cluster(name, "put-back", &json!({}))))?;
    place.place("one", &json!({"clusterSets": ["put-back"]}))?;
    let both = ["put-back1", "put-back2"];
    place.wait_chosen("one", &both)?;
    let by_hand = json!({"decisions": [{"clusterName": "put-back2", "reason": "mine"}]});
    place.status("placementdecision one-decision-1", &by_hand)?;
    place.wait_chosen("one", &both)?;
    // The labels, the owner, and the object itself.
    let labels = json!({"metadata": {"labels": {"mine": "x", format!("{GROUP}/decision-group-index"): "7"},
        "ownerReferences": null}});
    place.patch("placementdecision one-decision-1", &labels)?;
    wait::until("labels and owner", SOON, || {
        let decision = place.decisions("one")?.pop().context("no decision")?;
        let metadata = &decision["metadata"];
        ensure!(metadata["labels"].as_object().is_some_and(|labels| labels.len() == 3), "{metadata}");
        ensure!(metadata["labels"][format!("{GROUP}/decision-group-index")] == "0", "{metadata}");
        ensure!(metadata["ownerReferences"][0]["controller"] == true, "{metadata}");
        Ok(())
    })?;
    place.delete("placementdecision one-decision-1 -n placement-put-back")?;
    place.wait_chosen("one", &both)?;
    // A status that is removed, with no field owner left, by a client with our field manager's
    // name.
    let removed =
        r#"[{"op":"remove","path":"/status"},{"op":"replace","path":"/metadata/managedFields","value":[{}]}]"#;
    let mut words =
        vec!["patch", "placementdecision", "one-decision-1", "-n", place.name, "--type=json", "-p", removed];
    words.extend(["--subresource=status", "--field-manager=cluster-gateway-controllers"]);
    place.testbed.hub.server.kubectl().args(words).run()?.success()?;
    place.wait_chosen("one", &both)?;
    // A foreign decision with our label.
    let foreign = json!({"apiVersion": format!("{GROUP}/v1beta1"), "kind": "PlacementDecision",
        "metadata": {"name": "foreign", "namespace": place.name, "labels": {format!("{GROUP}/placement"): "one"}}});
    apply(testbed, &[foreign])?;
    place.wait_end("placementdecision foreign -n placement-put-back")?;
    // A status that another client wrote.
    place.status("placement one", &json!({"numberOfSelectedClusters": 9}))?;
    place.wait_chosen("one", &both)?;
    place.end(&both, &["put-back"])
}

pub fn misconfigured(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "placement-misconfigured")?;
    place.sets(&["misconfigured"])?;
    apply(testbed, &["misconfigured1", "misconfigured2"].map(|name| cluster(name, "misconfigured", &json!({}))))?;
    let with = |more: &Value| {
        let mut spec = more.clone();
        spec["clusterSets"] = json!(["misconfigured"]);
        spec
    };
    place.place("one", &with(&json!({})))?;
    place.wait_chosen("one", &["misconfigured1", "misconfigured2"])?;
    let expression = |text: &str| {
        with(&json!({"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": [text]}}}]}))
    };
    place.place("one", &expression("managedCluster.metadata.name =="))?;
    let message = place.wait_condition("one", MISCONFIGURED, "True/Misconfigured")?;
    ensure!(
        message.starts_with("Predicate:") && message.ends_with("; the decisions of generation 1 are kept"),
        "{message}"
    );
    ensure!(place.chosen("one")?.len() == 2, "decisions are gone");
    ensure!(place.condition("one", "PlacementSatisfied")?["status"] == "True", "what is said of those that are kept");
    wait::until_true("the metric", SOON, || Ok(place.metric("cluster_gateway_placement_misconfigured", "")? >= 1.0))?;
    // The decisions stay, also with the next leader and after another mistake.
    let mut place = place;
    place.running.restart()?;
    wait::until_true("that it schedules", SOON, || place.stands_by(super::NAME, false))?;
    place.place("one", &with(&json!({"tolerations": [{"operator": "Equal", "value": "x"}]})))?;
    wait::until("the other mistake", SOON, || {
        let message = place.wait_condition("one", MISCONFIGURED, "True/Misconfigured")?;
        let expected =
            "TaintToleration:If the key is empty, operator must be Exists.; the decisions of generation 1 are kept";
        ensure!(message == expected, "{message}");
        Ok(())
    })?;
    ensure!(place.chosen("one")?.len() == 2, "decisions are gone");
    place.place("one", &expression("managedCluster.metadata.name == 'misconfigured2'"))?;
    place.wait_chosen("one", &["misconfigured2"])?;
    place.wait_condition("one", MISCONFIGURED, "False/Succeedconfigured")?;
    wait::until_true("the metric", SOON, || Ok(place.metric("cluster_gateway_placement_misconfigured", "")? < 0.5))?;
    place.end(&["misconfigured1", "misconfigured2"], &["misconfigured"])
}

/// This works whether or not the hub's garbage collector has deleted the first Placement's objects.
pub fn recreated(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "placement-recreated")?;
    place.sets(&["recreated"])?;
    apply(testbed, &[cluster("recreated1", "recreated", &json!({}))])?;
    place.place("one", &json!({"clusterSets": ["recreated"]}))?;
    place.wait_chosen("one", &["recreated1"])?;
    place.delete("placement one -n placement-recreated")?;
    place.place("one", &json!({"clusterSets": ["recreated"]}))?;
    place.wait_chosen("one", &["recreated1"])?;
    wait::until("its owner", SOON, || {
        let uid = place.placement("one")?["metadata"]["uid"].clone();
        let decisions = place.decisions("one")?;
        let owners = decisions.first().map(|one| one["metadata"]["ownerReferences"].clone()).unwrap_or_default();
        ensure!(owners.as_array().is_some_and(|owners| owners.len() == 1) && owners[0]["uid"] == uid, "{owners}");
        Ok(())
    })?;
    place.end(&["recreated1"], &["recreated"])
}

pub fn followed(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "placement-followed")?;
    place.sets(&["followed-a", "followed-b"])?;
    apply(testbed, &[cluster("followed1", "followed-a", &json!({})), cluster("followed2", "followed-b", &json!({}))])?;
    place.place("both", &json!({}))?;
    place.place("only-b", &json!({"clusterSets": ["followed-b"]}))?;
    place.wait_chosen("both", &["followed1", "followed2"])?;
    place.wait_chosen("only-b", &["followed2"])?;
    let version = || Ok::<Value, anyhow::Error>(place.placement("only-b")?["metadata"]["resourceVersion"].clone());
    let (before, runs) = (version()?, runs(&place)?);
    let watched = Watched::start(&place, "only-b-decision-1")?;
    let soon = |change: &dyn Fn() -> Result<()>, name: &str, expected: &[&str]| -> Result<()> {
        let began = Instant::now();
        change()?;
        let took = watched.since(began, &format!("{name}-decision-1"), expected)?;
        print(&format!("{name} followed to {expected:?} {took:.0?} after a change began"));
        ensure!(took < FOLLOWED, "{name} followed to {expected:?} after {took:?}");
        Ok(())
    };
    let label = |set: &str| {
        let labels = json!({format!("{GROUP}/clusterset"): set});
        place.patch("managedcluster followed1", &json!({"metadata": {"labels": labels}}))
    };
    soon(&|| label("elsewhere"), "both", &["followed2"])?;
    // Only the Placement that the change can affect ran: once for the change, and once for its own
    // decision.
    let ran = self::runs(&place)? - runs;
    ensure!((1.0..=2.0).contains(&ran) && version()? == before, "{ran} runs");
    soon(&|| label("followed-a"), "both", &["followed1", "followed2"])?;
    soon(&|| place.delete("managedclusterset followed-a"), "both", &["followed2"])?;
    let unbound = Instant::now();
    soon(&|| place.delete("managedclustersetbinding followed-b -n placement-followed"), "both", &[])?;
    let took = watched.since(unbound, "only-b-decision-1", &[])?;
    ensure!(took < FOLLOWED, "the other followed after {took:?}");
    soon(&|| apply(testbed, &[binding(place.name, "followed-b")]), "only-b", &["followed2"])?;
    place.wait_chosen("only-b", &["followed2"])?;
    switched_off(&place)?;
    place.end(&["followed1", "followed2"], &["followed-a", "followed-b"])
}

/// Switched off by its annotation until that is removed.
fn switched_off(place: &Place<'_>) -> Result<()> {
    let annotated = |value: Value| {
        let annotations = json!({format!("{GROUP}/experimental-scheduling-disable"): value});
        place.patch("placement only-b", &json!({"metadata": {"annotations": annotations}}))
    };
    annotated(json!("true"))?;
    place.delete("managedcluster followed2")?;
    wait::until_true("the other to follow", SOON, || Ok(place.chosen("both")?.is_empty()))?;
    ensure!(place.chosen("only-b")? == ["followed2"], "it is scheduled");
    annotated(Value::Null)?;
    place.wait_chosen("only-b", &[])
}

fn runs(place: &Place<'_>) -> Result<f64> {
    place.metric("cluster_gateway_placement_schedule_duration_seconds_count", "")
}
