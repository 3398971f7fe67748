//! What is already correct is not written again.

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::json;

use super::{Place, WRITES, cluster};
use crate::fixture::{SOON, apply, versions};

pub fn restart(testbed: &Testbed) -> Result<()> {
    let mut place = Place::start(testbed, "placement-still")?;
    place.sets(&["still"])?;
    let names = ["still1", "still2", "still3"];
    apply(testbed, &names.map(|name| cluster(name, "still", &json!({}))))?;
    for count in 0..5 {
        place.place(&format!("still-{count}"), &json!({"clusterSets": ["still"], "numberOfClusters": count}))?;
    }
    for (count, expected) in [(1, &names[..1]), (2, &names[..2]), (3, &names[..]), (4, &names[..])] {
        wait::until(&format!("still-{count}"), SOON, || {
            let chosen = place.chosen(&format!("still-{count}"))?;
            ensure!(chosen.len() == expected.len(), "{chosen:?}");
            place.condition(&format!("still-{count}"), "PlacementSatisfied").map(drop)
        })?;
    }
    place.wait_condition("still-0", "PlacementSatisfied", "False/NoManagedClusterMatched")?;
    let versions = || versions(&testbed.hub.server, "placements,placementdecisions -n placement-still");
    let before = versions()?;
    place.running.restart()?;
    let runs = || place.metric("cluster_gateway_placement_schedule_duration_seconds_count", "");
    wait::until_true("all to be looked at", SOON, || Ok(runs()? >= 5.0))?;
    // Changes that no Placement depends on cause no writes either.
    place.patch("managedcluster still1", &json!({"metadata": {"annotations": {"touched": "yes"}}}))?;
    apply(testbed, &[cluster("still4", "still-elsewhere", &json!({}))])?;
    place.place("still-last", &json!({"clusterSets": ["still"]}))?;
    place.wait_chosen("still-last", &names)?;
    // A decision is created, its list written, and the status.
    // A write is counted when it is answered, which may be later than its object is seen.
    let writes = || place.metric(WRITES, "");
    wait::until_true("all three to count", SOON, || Ok(writes()? > 2.5))?;
    let writes = writes()?;
    ensure!((writes - 3.0).abs() < 0.1, "{writes} writes");
    let after = versions()?;
    ensure!(before.iter().all(|one| after.contains(one)), "{before:?} became {after:?}");
    place.end(&["still1", "still2", "still3", "still4"], &["still"])
}
