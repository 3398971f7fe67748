//! Prioritizers, by the choices that they lead to.

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{GROUP, Place, cluster, exactly};
use crate::fixture::{SOON, apply, namespace};

pub fn balance_and_steady(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "placement-balance")?;
    place.sets(&["balance"])?;
    apply(testbed, &["balance1", "balance2"].map(|name| cluster(name, "balance", &json!({}))))?;
    let one = json!({"numberOfClusters": 1, "clusterSets": ["balance"]});
    place.place("first", &one)?;
    place.wait_chosen("first", &["balance1"])?;
    place.place("second", &one)?;
    place.wait_chosen("second", &["balance2"])?;
    // A better cluster appears: the choice stays if Steady has more weight.
    let weights = |steady: i32| {
        let policy = exactly(&[("Steady", steady), ("ResourceAllocatableCPU", 1)]);
        json!({"numberOfClusters": 1, "clusterSets": ["balance"], "prioritizerPolicy": policy})
    };
    place.place("second", &weights(3))?;
    for (name, cpu) in [("balance1", "2"), ("balance2", "1")] {
        allocatable(&place, name, cpu, "1Gi")?;
    }
    wait::until_true("that it looked", SOON, || {
        let why = place.running.get(&format!("/debug/placement?name={}/second", place.name))?;
        Ok(why.contains("ResourceAllocatableCPU=100x1") && why.contains("ResourceAllocatableCPU=-100x1"))
    })?;
    // The condition of a new generation comes from a run that has seen both clusters.
    let mut again = weights(3);
    again["tolerations"] = json!([{"key": "another-generation", "operator": "Exists"}]);
    place.place("second", &again)?;
    place.wait_condition_now("second", "PlacementSatisfied")?;
    ensure!(place.chosen("second")? == ["balance2"], "{:?}", place.chosen("second")?);
    place.place("second", &weights(0))?;
    place.wait_chosen("second", &["balance1"])?;
    place.end(&["balance1", "balance2"], &["balance"])
}

fn allocatable(place: &Place<'_>, name: &str, cpu: &str, memory: &str) -> Result<()> {
    let resources = json!({"cpu": cpu, "memory": memory});
    place.status(
        &format!("managedcluster {name}"),
        &json!({"conditions": [], "version": {},
        "allocatable": resources, "capacity": resources}),
    )
}

pub fn score(place: &Place<'_>, cluster: &str, value: i32, until: Option<Timestamp>) -> Result<()> {
    let object = json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "AddOnPlacementScore",
        "metadata": {"name": "load", "namespace": cluster}});
    apply(place.testbed, &[namespace(cluster), object])?;
    let mut status = json!({"scores": [{"name": "free", "value": value}]});
    if let Some(until) = until {
        status["validUntil"] = until.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into();
    }
    place.status(&format!("addonplacementscore load -n {cluster}"), &status)
}

/// A policy by the add-on's score only.
pub fn by_load() -> Value {
    let add_on = json!({"type": "AddOn", "addOn": {"resourceName": "load", "scoreName": "free"}});
    json!({"mode": "Exact", "configurations": [{"scoreCoordinate": add_on, "weight": 1}]})
}

pub fn scores(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "placement-scores")?;
    place.sets(&["scores"])?;
    apply(testbed, &["score1", "score2"].map(|name| cluster(name, "scores", &json!({}))))?;
    let spec = json!({"numberOfClusters": 1, "clusterSets": ["scores"], "prioritizerPolicy": by_load()});
    place.place("scored", &spec)?;
    place.wait_chosen("scored", &["score1"])?;
    score(&place, "score2", 40, Some(Timestamp::now() + SignedDuration::from_secs(8)))?;
    place.wait_chosen("scored", &["score2"])?;
    // The score expires without any other event.
    place.wait_chosen("scored", &["score1"])?;
    let warned = wait::until("a Warning", SOON, || {
        let line =
            format!("events.events.k8s.io -n {} --field-selector regarding.name=scored,type=Warning", place.name);
        let events = place.json(&line)?["items"].as_array().cloned().unwrap_or_default();
        let event: Option<Value> = events.into_iter().find(|event| event["reason"] == "DecisionUpdate");
        event.ok_or_else(|| anyhow::anyhow!("none yet"))
    })?;
    let note = warned["note"].as_str().unwrap_or_default();
    ensure!(note.contains("score2/load expired") && note.contains("in plugin AddOn/load/free"), "{note}");
    place.end(&["score1", "score2"], &["scores"])
}

pub fn resources(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "placement-resources")?;
    place.sets(&["resources"])?;
    let names = ["resource1", "resource2", "resource3"];
    apply(testbed, &names.map(|name| cluster(name, "resources", &json!({}))))?;
    for (name, cpu, memory) in [("resource1", "1", "8Gi"), ("resource2", "2500m", "4Gi"), ("resource3", "4", "2Gi")] {
        allocatable(&place, name, cpu, memory)?;
    }
    let most = |of: &str| json!({"numberOfClusters": 1, "clusterSets": ["resources"], "prioritizerPolicy": exactly(&[(of, 1)])});
    place.place("cpu", &most("ResourceAllocatableCPU"))?;
    place.place("memory", &most("ResourceAllocatableMemory"))?;
    place.wait_chosen("cpu", &["resource3"])?;
    place.wait_chosen("memory", &["resource1"])?;
    let why = place.running.get(&format!("/debug/placement?name={}/cpu", place.name))?;
    ensure!(why.contains("ResourceAllocatableCPU=0x1"), "half way: {why}");
    place.end(&names, &["resources"])
}
