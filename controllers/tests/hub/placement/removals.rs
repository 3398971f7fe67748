//! Many clusters that disappear at once.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::json;

use super::{GROUP, Place, cluster};
use crate::fixture::{SOON, apply};

const HELD: &str = "cluster_gateway_placement_removals_held_total";

pub fn crowd(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "placement-crowd")?;
    place.sets(&["crowd", "crowd-calm"])?;
    let names: Vec<String> = (0..60).map(|number| format!("crowd{number:02}")).collect();
    let mut all: Vec<_> = names.iter().map(|name| cluster(name, "crowd", &json!({}))).collect();
    all.push(cluster("crowd-calm1", "crowd-calm", &json!({})));
    apply(testbed, &all)?;
    place.place("many", &json!({"clusterSets": ["crowd"]}))?;
    let count = |expected: usize| {
        wait::until_true(&format!("{expected} clusters"), SOON, || Ok(place.chosen("many")?.len() == expected))
    };
    count(60)?;
    // A few clusters disappear, as in normal operation.
    place.delete(&format!("managedclusters {} --wait=false", names[..15].join(" ")))?;
    count(45)?;
    ensure!(place.metric(HELD, "")? == 0.0, "a few are held");
    // Then all of them, as by mistake.
    place.delete(&format!("managedclusters -l {GROUP}/clusterset=crowd --wait=false"))?;
    let told = place.wait_event("many", "RemovalHeld")?;
    ensure!(told.contains("many clusters, sets or bindings disappeared at once"), "{told}");
    // 20 removals within a minute are followed.
    let kept = place.chosen("many")?;
    ensure!(kept.len() >= 40, "workloads are withdrawn from {} clusters", 60 - kept.len());
    ensure!(place.metric(HELD, "")? >= 1.0, "it is not counted");
    // Placements that lose no clusters are still scheduled. Clusters that were deleted by mistake
    // come back without having lost anything.
    place.place("calm", &json!({"clusterSets": ["crowd-calm"]}))?;
    place.wait_chosen("calm", &["crowd-calm1"])?;
    ensure!(place.chosen("many")? == kept, "it is not kept");
    // Other changes are followed at once.
    let with_new: BTreeSet<String> = kept.iter().cloned().chain(["crowd-new".to_owned()]).collect();
    let is = |expected: &BTreeSet<String>| {
        wait::until_true("what is not held", SOON, || {
            Ok(place.chosen("many")?.into_iter().collect::<BTreeSet<_>>() == *expected)
        })
    };
    apply(testbed, &[cluster("crowd-new", "crowd", &json!({}))])?;
    is(&with_new)?;
    let taint = json!([{"key": "crowd", "effect": "NoSelect"}]);
    let mut tainted = cluster("crowd-new", "crowd", &json!({}));
    tainted["spec"]["taints"] = taint;
    apply(testbed, &[tainted])?;
    is(&kept.iter().cloned().collect())?;
    apply(testbed, &names.iter().map(|name| cluster(name, "crowd", &json!({}))).collect::<Vec<_>>())?;
    count(60)?;
    place.end(
        &names.iter().map(String::as_str).chain(["crowd-calm1", "crowd-new"]).collect::<Vec<_>>(),
        &["crowd", "crowd-calm"],
    )
}
