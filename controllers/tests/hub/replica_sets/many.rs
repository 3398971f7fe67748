//! As many clusters as three `PlacementDecision`s hold.

use std::time::Duration;

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use tokio::time::Instant;

use super::{Place, WRITES, all_at_once};
use crate::fixture::print;

const CLUSTERS: usize = 300;
const PATIENCE: Duration = Duration::from_mins(2);

pub fn all(testbed: &Testbed) -> Result<()> {
    let mut place = Place::start(testbed, "sets-many")?;
    let names: Vec<String> = (0..CLUSTERS).map(|number| format!("sets-many-{number:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    place.clusters(&names)?;
    place.choose("p", &[("", &names[..100]), ("", &names[100..200]), ("", &names[200..])])?;
    let began = Instant::now();
    place.set("app", "1", &all_at_once("p"))?;
    let creates = || place.metric(WRITES, "create");
    wait::until_true("all works", PATIENCE, || Ok(creates()? > 299.5))?;
    let took = began.elapsed();
    print(&format!("{CLUSTERS} works in {took:.1?}"));
    wait::until_true("its status", PATIENCE, || Ok(place.read("app")?["status"]["summary"]["total"] == CLUSTERS))?;
    // To its last write: one on its way would be refused beside the next change, and repeated.
    place.wait_told("app", 3, [CLUSTERS, CLUSTERS])?;
    // The set's status, at most once a second, and its finalizer.
    let of_set = place.metric(WRITES, "object=\"set\"")?;
    ensure!(of_set <= 3.0 + began.elapsed().as_secs_f64(), "{of_set} writes of the set");
    ensure!(place.works("app")?.len() == CLUSTERS && (creates()? - 300.0).abs() < 0.1, "works are made twice");
    let changed = Instant::now();
    place.set("app", "2", &all_at_once("p"))?;
    wait::until_true("all with the new template", PATIENCE, || {
        Ok(place.metric(WRITES, "work\",operation=\"update")? > 299.5)
    })?;
    print(&format!("a template change in {CLUSTERS} works in {:.1?}", changed.elapsed()));
    ensure!(place.with_data("app", "2")?.len() == CLUSTERS);
    place.wait_told("app", 3, [CLUSTERS, CLUSTERS])?;
    // After a restart, nothing is written.
    let failures = place.metric("cluster_gateway_controllers_failures_total", "replica-sets")?;
    ensure!(failures == 0.0, "{failures} failures");
    place.running.restart()?;
    wait::until_true("it to be looked at", PATIENCE, || Ok(place.metric(super::SETS, "")? > 0.5))?;
    ensure!(place.metric(WRITES, "")? == 0.0, "what is so is written");
    place.end()
}
