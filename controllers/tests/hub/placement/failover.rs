//! A leader dies or stops during its work, and another continues.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::{kubectl, size, wait};
use serde_json::json;
use tokio::time::Instant;

use super::{Place, cluster, exactly};
use crate::fixture::{Running, SOON, apply, print};

/// Time from a leader's death: its Lease's 15 s, and the time to decide.
const AFTER_A_KILL: Duration = Duration::from_secs(20);
const AFTER_A_STOP: Duration = Duration::from_secs(5);
const PLACEMENTS: usize = 40;
/// The number in the gate; `TEST_PLACEMENT_CLUSTERS` changes it.
const CLUSTERS: usize = 100;
/// The Placement that is decided before kubectl watches.
const LISTED: &str = "listed";
/// The decision that is written last.
const LAST: &str = "last-decision-1";

pub fn take_over(testbed: &Testbed) -> Result<()> {
    let mut place = Place::start(testbed, "placement-over")?;
    place.sets(&["over"])?;
    let clusters = size::of("TEST_PLACEMENT_CLUSTERS", CLUSTERS)?;
    let names: Vec<String> = (0..clusters).map(|number| format!("over{number:04}")).collect();
    for some in names.chunks(CLUSTERS) {
        apply(testbed, &some.iter().map(|name| cluster(name, "over", &json!({}))).collect::<Vec<_>>())?;
    }
    let second = place.running.replica()?;
    let columns = "-o custom-columns=N:.metadata.name,V:.metadata.resourceVersion --no-headers";
    let line = format!("get placementdecisions -n {} -w {columns}", place.name);
    let mut seen = testbed.hub.server.kubectl().args(line.split(' ')).start()?;

    // Steady alone, without Balance: otherwise other Placements count, and one run may lead to
    // another.
    let spec = json!({"clusterSets": ["over"], "numberOfClusters": 10, "prioritizerPolicy": exactly(&[("Steady", 1)])});
    let name = place.name;
    let object = |number: usize| super::placement(name, &format!("over-{number}"), &spec);
    // kubectl lists at its start, which shows an object once, however often it was written before.
    place.place(LISTED, &spec)?;
    seen.next_line(SOON).context("that kubectl watches")?;
    apply(testbed, &(0..PLACEMENTS / 2).map(object).collect::<Vec<_>>())?;
    let mut writes = BTreeMap::from([(next(&mut seen)?, 1)]);
    waits_and_sees(&second, name)?;
    // Drops it as SIGKILL would: the Lease expires.
    drop(place.running.controllers.take());
    let died = Instant::now();
    apply(testbed, &(PLACEMENTS / 2..PLACEMENTS).map(object).collect::<Vec<_>>())?;
    place.running = second;
    for number in 0..PLACEMENTS {
        wait::until_true("each to be decided", AFTER_A_KILL + SOON, || {
            Ok(place.chosen(&format!("over-{number}"))?.len() == 10)
        })?;
    }
    ensure!(died.elapsed() < AFTER_A_KILL + SOON, "it took {:?}", died.elapsed());

    // A leader that stops gives its Lease up.
    let third = place.running.replica()?;
    place.running.stop()?;
    let stopped = Instant::now();
    place.place("last", &spec)?;
    wait::until_true("the third to decide", SOON, || Ok(place.chosen("last")?.len() == 10))?;
    let took = stopped.elapsed();
    print(&format!("with {clusters} clusters, the next decision came {took:.1?} after a clean stop"));
    ensure!(took < AFTER_A_STOP, "it took {took:?}");
    place.running = third;

    // One create and one write of the list each, whichever replica made them.
    while writes.get(LAST).is_none_or(|count| *count < 2) {
        *writes.entry(next(&mut seen)?).or_default() += 1;
    }
    ensure!(writes.len() == PLACEMENTS + 1 && writes.values().all(|count| *count == 2), "{writes:?}");
    place.end(&names.iter().map(String::as_str).collect::<Vec<_>>(), &["over"])
}

/// The decision that the next line is of.
fn next(seen: &mut kubectl::Running) -> Result<String> {
    loop {
        let line = seen.next_line(SOON).context("a decision")?;
        let name = line.split_whitespace().next().unwrap_or_default();
        if !name.starts_with(LISTED) {
            return Ok(name.to_owned());
        }
    }
}

/// A standby has listed everything and knows what it would choose.
fn waits_and_sees(running: &Running, namespace: &str) -> Result<()> {
    let path = format!("/debug/placement?name={namespace}/over-0&format=json");
    wait::until("one that waits to know of a choice", SOON, || {
        let answer = running.get(&path)?;
        ensure!(answer.contains("over0000"), "{answer}");
        Ok(())
    })?;
    let leads = running.metric("cluster_gateway_controllers_leader", "")?;
    ensure!(leads < 0.5, "two lead");
    Ok(())
}
