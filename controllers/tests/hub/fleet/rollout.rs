//! A changed template on real members: it reaches them one by one, or the canary first; a member
//! that cannot run it stops the rollout; and objects that are dropped or deleted are gone from the
//! members.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::wait;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{CLUSTER, Fleet, NAMES, SET, WORK};
use crate::fixture::{SOON, apply};

/// The name of the Placement, and of the set whose objects are applied.
const NAME: &str = "rolled";
/// Whose pods run on the last member, and not on the others, which take none.
const PODS: &str = "pods";
/// How long a cluster must have succeeded before the next.
const SUCCESS: Duration = Duration::from_secs(5);
/// Times on the hub have whole seconds, and the cluster before got its object a moment after its
/// work.
const WHOLE: Duration = Duration::from_secs(2);

pub fn of_templates(fleet: &Fleet<'_>) -> Result<()> {
    let [one, two, canary] = NAMES;
    for name in NAMES {
        let stage = if name == canary { "canary" } else { "rest" };
        fleet.testbed.hub.server.label(&format!("managedcluster {name} rolled=yes stage={stage}"))?;
    }
    apply(fleet.testbed, &[placement()])?;
    put(fleet, "1", &json!({"type": "All"}))?;
    NAMES.iter().try_for_each(|name| wait_data(fleet, name, "1").map(drop))?;
    put(fleet, "2", &json!({"type": "All"}))?;
    NAMES.iter().try_for_each(|name| wait_data(fleet, name, "2").map(drop))?;
    wait_rolled_out(fleet)?;
    one_at_a_time(fleet)?;
    canary_first(fleet)?;
    stopped(fleet)?;
    dropped(fleet, two)?;
    deleted(fleet, one, "Foreground")?;
    fleet.testbed.hub.server.label(&format!("managedcluster {two} rolled=yes"))?;
    deleted(fleet, one, "Background")?;
    fleet.delete(&format!("placement {NAME} -n default"))
}

/// The canary is its own decision group, and the first.
fn placement() -> Value {
    let canary = json!({"groupName": "canary",
        "groupClusterSelector": {"labelSelector": {"matchLabels": {"stage": "canary"}}}});
    let selector = json!({"labelSelector": {"matchLabels": {"rolled": "yes"}}});
    json!({"apiVersion": format!("{CLUSTER}/v1beta1"), "kind": "Placement",
        "metadata": {"name": NAME, "namespace": "default"},
        "spec": {"clusterSets": [SET], "predicates": [{"requiredClusterSelector": selector}],
            "decisionStrategy": {"groupStrategy": {"decisionGroups": [canary]}}}})
}

fn set(name: &str, manifest: &Value, strategy: &Value, more: &Value) -> Value {
    let mut template = more.clone();
    template["workload"] = json!({"manifests": [manifest]});
    json!({"apiVersion": format!("{WORK}/v1alpha1"), "kind": "ManifestWorkReplicaSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"cascadeDeletionPolicy": "Background",
            "placementRefs": [{"name": NAME, "rolloutStrategy": strategy}], "manifestWorkTemplate": template}})
}

fn put(fleet: &Fleet<'_>, data: &str, strategy: &Value) -> Result<()> {
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": "default"}, "data": {"a": data}});
    apply(fleet.testbed, &[set(NAME, &manifest, strategy, &json!({}))])
}

/// The data that a member has from the set.
fn data(fleet: &Fleet<'_>, member: &str) -> Result<Value> {
    Ok(fleet.object(member, &format!("configmap {NAME}"))?["data"]["a"].clone())
}

/// Returns the last moment at which the member had something else.
fn wait_data(fleet: &Fleet<'_>, member: &str, expected: &str) -> Result<Instant> {
    wait::last_before(&format!("{member} to have {expected}"), SOON, || {
        let found = data(fleet, member)?;
        ensure!(found == expected, "{found}");
        Ok(())
    })
}

fn wait_rolled_out(fleet: &Fleet<'_>) -> Result<()> {
    wait::until("all to have succeeded", SOON, || {
        let set = fleet.json(&format!("manifestworkreplicaset {NAME} -n default"))?;
        let told = super::condition(&set["status"], "PlacementRolledOut");
        ensure!(super::said(told) == "True/Complete", "{}", set["status"]);
        Ok(())
    })
}

/// Clusters follow by name, group after group: each after the one before has succeeded for
/// [`SUCCESS`].
fn one_at_a_time(fleet: &Fleet<'_>) -> Result<()> {
    let success = format!("{}s", SUCCESS.as_secs());
    put(fleet, "3", &json!({"type": "Progressive", "progressive": {"maxConcurrency": 1, "minSuccessTime": success}}))?;
    let mut reached: Option<Instant> = None;
    for (at, name) in NAMES.iter().enumerate() {
        let before = wait_data(fleet, name, "3")?;
        let now = Instant::now();
        for other in &NAMES[at + 1..] {
            ensure!(data(fleet, other)? == "2", "{other} did not wait for {name}");
        }
        let waited = reached.map(|reached| now - reached);
        ensure!(waited.is_none_or(|waited| waited + WHOLE >= SUCCESS), "{name} followed after {waited:?}");
        reached = Some(before);
    }
    wait_rolled_out(fleet)
}

/// The canary is first: no other cluster gets the template before it has succeeded for [`SUCCESS`].
fn canary_first(fleet: &Fleet<'_>) -> Result<()> {
    let [one, two, canary] = NAMES;
    let success = format!("{}s", SUCCESS.as_secs());
    let per_group = json!({"mandatoryDecisionGroups": [{"groupName": "canary"}], "minSuccessTime": success});
    put(fleet, "4", &json!({"type": "ProgressivePerGroup", "progressivePerGroup": per_group}))?;
    let reached = wait_data(fleet, canary, "4")?;
    for name in [one, two] {
        ensure!(data(fleet, name)? == "3", "{name} did not wait for the canary");
    }
    wait_data(fleet, one, "4")?;
    let waited = reached.elapsed();
    ensure!(waited + WHOLE >= SUCCESS, "the rest followed after {waited:?}");
    wait_data(fleet, two, "4")?;
    wait_rolled_out(fleet)
}

/// The first member takes no pods: after a while that is a failure.
fn stopped(fleet: &Fleet<'_>) -> Result<()> {
    let [one, two, canary] = NAMES;
    [one, two].iter().try_for_each(|name| cordon(fleet, name, true))?;
    let strategy = |most: u8| {
        json!({"type": "Progressive",
            "progressive": {"maxConcurrency": 1, "progressDeadline": "3s", "maxFailures": most}})
    };
    let template = |most: u8| pods(&strategy(most));
    apply(fleet.testbed, &[template(0)])?;
    let runs = |name: &str| Ok::<_, anyhow::Error>(!fleet.object(name, &format!("deployment {PODS}"))?.is_null());
    wait::until_true("the first to have it", SOON, || runs(one))?;
    let stopped = || Ok(fleet.metric("cluster_gateway_replica_sets_sets", "stopped")? > 0.5);
    wait::until_true("that it stops", SOON, stopped)?;
    ensure!(!runs(two)? && !runs(canary)?, "it goes on in spite of a failure");
    // With two failures allowed, the rollout continues, and succeeds where pods run.
    apply(fleet.testbed, &[template(2)])?;
    wait::until_true("the second to have it", SOON, || runs(two))?;
    fleet.wait_pods(canary, PODS, 1)?;
    fleet.wait_work(PODS, canary, "Progressing", "False/ConditionRulesAggregated")?;
    fleet.wait_work(PODS, one, "Progressing", "True/ConditionRulesAggregated")?;
    fleet.delete(&format!("manifestworkreplicaset {PODS} -n default"))?;
    for name in NAMES {
        wait::until_true("the end of the pods", SOON, || Ok(!runs(name)?))?;
        fleet.wait_pods(name, PODS, 0)?;
    }
    [one, two].iter().try_for_each(|name| cordon(fleet, name, false))
}

/// Has no further pod come to a member's nodes.
fn cordon(fleet: &Fleet<'_>, name: &str, is_closed: bool) -> Result<()> {
    let patch = json!({"spec": {"unschedulable": is_closed}});
    ["node-a", "node-b"].iter().try_for_each(|node| fleet.member(name).patch(&format!("node {node}"), &patch).map(drop))
}

/// A set whose works are progressing until their pods are ready.
fn pods(strategy: &Value) -> Value {
    let labels = json!({"app": PODS});
    let manifest = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": PODS, "namespace": "default"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": "none"}]}}}});
    let rule = json!({"condition": "Progressing", "type": "CEL",
        "celExpressions": ["!has(object.status.readyReplicas) || object.status.readyReplicas < object.spec.replicas"]});
    let config = json!({"resourceIdentifier":
        {"group": "apps", "resource": "deployments", "namespace": "default", "name": PODS}, "conditionRules": [rule]});
    set(PODS, &manifest, strategy, &json!({"manifestConfigs": [config]}))
}

/// A cluster that is no longer chosen loses its work, and its member the object.
fn dropped(fleet: &Fleet<'_>, name: &str) -> Result<()> {
    fleet.testbed.hub.server.label(&format!("managedcluster {name} rolled=no"))?;
    wait::until_true("the end of its work", SOON, || Ok(fleet.work(NAME, name).is_err()))?;
    ensure!(data(fleet, name)?.is_null(), "its object is left behind");
    for other in NAMES.iter().filter(|other| **other != name) {
        ensure!(data(fleet, other)? == "4", "{other} lost its own");
    }
    Ok(())
}

/// Deletes the set while a member holds its object: a `Foreground` set exists until its works are
/// gone, a `Background` set does not. Afterwards the objects are gone from all members.
fn deleted(fleet: &Fleet<'_>, holder: &str, policy: &str) -> Result<()> {
    let line = format!("manifestworkreplicaset {NAME} -n default");
    put(fleet, "5", &json!({"type": "All"}))?;
    wait_data(fleet, holder, "5")?;
    let expected = if policy == "Foreground" { 2 } else { 3 };
    wait::until_true("works for all that are chosen", SOON, || {
        Ok(NAMES.iter().filter(|name| fleet.work(NAME, name).is_ok()).count() == expected)
    })?;
    fleet.patch(&line, &json!({"spec": {"cascadeDeletionPolicy": policy}}))?;
    let hold = |finalizers: Value| {
        let patch = json!({"metadata": {"finalizers": finalizers}});
        fleet.member(holder).patch(&format!("configmap {NAME} -n default"), &patch).map(drop)
    };
    hold(json!(["fleet.example/held"]))?;
    fleet.delete(&format!("{line} --wait=false"))?;
    let waits = || {
        let object = fleet.object(holder, &format!("configmap {NAME}"))?;
        ensure!(!object["metadata"]["deletionTimestamp"].is_null(), "{object}");
        fleet.work(NAME, holder).context("its work is gone before its object")
    };
    wait::until("its object to be deleted", SOON, waits)?;
    let is_there = || Ok::<_, anyhow::Error>(!fleet.testbed.hub.server.read(&line)?.is_null());
    if policy == "Foreground" {
        // The other works are gone, but the set still exists.
        wait::until_true("the end of the other works", SOON, || {
            Ok(NAMES.iter().filter(|name| **name != holder).all(|name| fleet.work(NAME, name).is_err()))
        })?;
        ensure!(is_there()?, "it did not wait for its works");
    } else {
        wait::until_true("its end", SOON, || Ok(!is_there()?))?;
        ensure!(fleet.work(NAME, holder).is_ok(), "the work is gone before its object");
    }
    hold(Value::Null)?;
    wait::until_true("its end", SOON, || Ok(!is_there()?))?;
    for name in NAMES {
        wait::until_true("the end of its objects", SOON, || {
            Ok(data(fleet, name)?.is_null() && fleet.work(NAME, name).is_err())
        })?;
    }
    Ok(())
}
