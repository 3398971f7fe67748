//! A leader that stands still for longer than its Lease writes nothing when it goes on.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::Value;
use tokio::time::Instant;

use super::{LEADER, TAKE_OVER};
use crate::fixture::{SOON, apply, kubeconfig_secret, member_kubeconfig, namespace, wait_secret};
use crate::others::value;
use crate::program::Program;

const FLEET: &str = "frozen-fleet";
const CLUSTERS: &str = "frozen-clusters";
/// Of the Lease, in which the second stands still and leads all the same.
const STILL_ITS: Duration = Duration::from_secs(7);

/// Sources that are refused, each with an Event: so many that most wait when their leader freezes.
const REFUSED: u32 = 200;
const OBJECTS: &str = "cluster_gateway_controllers_source_objects";
const FLAGS: [&str; 2] = ["--enable=kubeconfig", "--watch-namespaces=frozen-fleet"];
const FIRST: &str = "frozen-first";
const SECOND: &str = "frozen-second";

pub fn frozen(testbed: &Testbed) -> Result<()> {
    apply(testbed, &[namespace(FLEET), namespace(CLUSTERS), source(testbed, "one", "before")])?;
    let mut first = Program::with_account(testbed, FIRST, CLUSTERS, &FLAGS)?;
    first.wait_to_say("leading")?;
    wait_secret(testbed, CLUSTERS, "one")?;
    let mut second = Program::with_account(testbed, SECOND, CLUSTERS, &FLAGS)?;
    second.wait_to_say("another leads")?;

    // Another writes while the first stands still: what it last saw is what was before.
    apply(testbed, &(0..REFUSED).map(|it| kubeconfig_secret(FLEET, &format!("no-{it}"), "none")).collect::<Vec<_>>())?;
    let refused = || Ok(first.metric(OBJECTS, "refused")? >= f64::from(REFUSED));
    wait::until_true("the refusals", SOON, refused)?;
    first.process.signal("STOP")?;
    apply(testbed, &[source(testbed, "one", "meanwhile"), source(testbed, "two", "meanwhile")])?;
    // What was under way in that moment has arrived.
    let mark = testbed.audit.mark()?;
    wait::until_true("the second to lead", TAKE_OVER, || Ok(second.log()?.contains("leading")))?;
    wait_token(testbed, "one", "meanwhile")?;
    wait_secret(testbed, CLUSTERS, "two")?;
    let written = versions(testbed)?;

    // Now the second stands still, well within its Lease, and the first goes on with all there is
    // to do: what came meanwhile, and what comes now, which nobody else writes.
    second.process.signal("STOP")?;
    let still = Instant::now();
    apply(testbed, &[source(testbed, "one", "after"), source(testbed, "three", "after")])?;
    first.process.signal("CONT")?;
    first.wait_to_say("leading no longer")?;
    wait::until_true("that the first does not lead", SOON, || Ok(first.metric(LEADER, "")? < 1.0))?;
    ensure!(versions(testbed)? == written, "the first wrote: {written:?} {:?}", versions(testbed)?);
    second.process.signal("CONT")?;
    let stood = still.elapsed();
    wait_token(testbed, "one", "after")?;
    wait_secret(testbed, CLUSTERS, "three")?;
    ensure!(stood < STILL_ITS && !second.log()?.contains("leading no longer"), "the second lost it, after {stood:?}");
    // It stands by from now on.
    first.wait_to_say("another leads")?;
    first.process.check()?;
    let by_first = testbed.audit.writes((CLUSTERS, FIRST), mark)?;
    ensure!(by_first.is_empty(), "the first wrote: {by_first:?}");
    let by_second = testbed.audit.writes((CLUSTERS, SECOND), mark)?;
    let of_secrets = by_second.iter().filter(|write| write.contains("/secrets/")).count();
    ensure!(of_secrets == 4, "each change is one write: {by_second:?}");
    Ok(())
}

fn source(testbed: &Testbed, name: &str, token: &str) -> Value {
    kubeconfig_secret(FLEET, name, &member_kubeconfig(testbed, token))
}

fn wait_token(testbed: &Testbed, name: &str, token: &str) -> Result<()> {
    wait::until(&format!("the token of {name}"), SOON, || {
        let found = value(testbed, CLUSTERS, name, "token")?;
        ensure!(found == token, "{found}");
        Ok(())
    })
}

/// Of all Secrets of clusters.
fn versions(testbed: &Testbed) -> Result<Vec<String>> {
    let all = testbed.hub.server.read(&format!("secrets -n {CLUSTERS}"))?;
    let items = all["items"].as_array().context("a list")?;
    Ok(items
        .iter()
        .map(|secret| format!("{} {}", secret["metadata"]["name"], secret["metadata"]["resourceVersion"]))
        .collect())
}
