//! The part waits for kinds that the hub lacks.

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::tools;
use serde_json::json;

use super::{GROUP, Place, binding, cluster, prioritizers};
use crate::fixture::apply;

pub fn late(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "placement-late-kinds")?;
    place.sets(&["late-kinds"])?;
    apply(testbed, &["late-kind1", "late-kind2"].map(|name| cluster(name, "late-kinds", &json!({}))))?;
    let scores = format!("addonplacementscores.{GROUP}");
    place.delete(&format!("crd placements.{GROUP} placementdecisions.{GROUP} {scores}"))?;
    // For the running replica, and for one that starts without the kinds.
    let mut place = place;
    place.running.restart()?;
    define(&place, "cluster/v1beta1/0000_0")?;
    let spec = json!({"numberOfClusters": 1, "clusterSets": ["late-kinds"],
        "prioritizerPolicy": prioritizers::by_load()});
    place.place("one", &spec)?;
    // The choice does not wait for scores.
    place.wait_chosen("one", &["late-kind1"])?;
    ensure!(place.running.get("/livez")?.contains("ok"), "it lives");
    define(&place, "cluster/v1alpha1/0000_05")?;
    prioritizers::score(&place, "late-kind2", 40, None)?;
    place.wait_chosen("one", &["late-kind2"])?;
    place.end(&["late-kind1", "late-kind2"], &["late-kinds"])
}

pub fn kept(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "placement-kept-kinds")?;
    place.sets(&["kept-kinds"])?;
    let clusters = ["kept-kind1", "kept-kind2"];
    apply(testbed, &clusters.map(|name| cluster(name, "kept-kinds", &json!({}))))?;
    place.place("one", &json!({"clusterSets": ["kept-kinds"]}))?;
    place.wait_chosen("one", &clusters)?;
    place.delete(&format!("crd managedclustersetbindings.{GROUP}"))?;
    define(&place, "cluster/v1beta2/0000_0")?;
    // The kind is back, but its objects are gone.
    let told = place.wait_event("one", "RemovalHeld")?;
    ensure!(told.contains("decisions keep the clusters that left"), "{told}");
    ensure!(place.chosen("one")? == clusters, "workloads are withdrawn from all clusters");
    ensure!(place.metric("cluster_gateway_placement_removals_held_total", "")? >= 1.0, "it is not counted");
    // Added clusters are written at once.
    apply(testbed, &[binding(place.name, "kept-kinds"), cluster("kept-kind3", "kept-kinds", &json!({}))])?;
    place.wait_chosen("one", &["kept-kind1", "kept-kind2", "kept-kind3"])?;
    place.end(&["kept-kind1", "kept-kind2", "kept-kind3"], &["kept-kinds"])
}

fn define(place: &Place<'_>, files: &str) -> Result<()> {
    place.testbed.hub.server.apply_text(&tools::kinds("open-cluster-management.io/api", &[files])?)
}
