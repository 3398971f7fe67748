//! Two replicas: one leads at a time, and nothing is written twice.

mod frozen;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::{pace, wait};
use libtest_mimic::Trial;
use tokio::time::Instant;

use crate::fixture::{
    Fixture, Running, SOON, apply, kubeconfig_secret, member_kubeconfig, namespace, print, secret_field, test,
    wait_secret,
};
use crate::program::Program;

/// Time from a leader's death: 15 s from the last renewal of its Lease, and the requests to take it
/// over.
const TAKE_OVER: Duration = Duration::from_secs(16);
/// Time from the end of a leader that gives its Lease up.
const HANDED_ON: Duration = Duration::from_secs(5);
/// Time from SIGTERM: it takes one request.
const GIVEN_UP: Duration = Duration::from_secs(2);
const LEADER: &str = "cluster_gateway_controllers_leader";

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "leaders: a second replica takes over, and rewrites nothing", take_over),
        test(fixture, "leaders: SIGTERM gives the Lease up at once", terminated),
        test(fixture, "leaders: one that stood still for longer than its Lease writes nothing", frozen::frozen),
    ]
}

fn leads(running: &Running) -> Result<bool> {
    Ok(running.metric(LEADER, "")? >= 1.0)
}

/// Ends a process as the end of its pod does.
fn terminated(testbed: &Testbed) -> Result<()> {
    let clusters = "leaders-ended";
    apply(testbed, &[namespace(clusters)])?;
    let start = |name: &str| Program::with_account(testbed, name, clusters, &["--enable=kubeconfig"]);
    let mut first = start("leaders-ended-1")?;
    first.wait_to_say("leading")?;
    let mut second = start("leaders-ended-2")?;
    second.wait_to_say("another leads")?;
    let lease = format!("lease cluster-gateway-controllers -n {clusters}");
    let holder = || Ok::<_, anyhow::Error>(testbed.hub.server.read(&lease)?["spec"]["holderIdentity"].to_string());
    let held = holder()?;
    first.process.signal("TERM")?;
    let (took, allowance) = pace::beside(&testbed.hub.server, || {
        let said = Instant::now();
        wait::until_true("the Lease to be given up", SOON, || Ok(holder()? != held))?;
        Ok(said.elapsed())
    })?;
    print(&format!("the Lease was given up {took:.2?} after SIGTERM"));
    ensure!(took < GIVEN_UP + allowance, "it was given up after {took:?}, and the hub's part may be {allowance:?}");
    wait::until_true("the second to lead", HANDED_ON, || Ok(second.metric(LEADER, "")? >= 1.0))?;
    wait::until_true("the first process to end", SOON, || Ok(first.process.check().is_err()))
}

fn take_over(testbed: &Testbed) -> Result<()> {
    let (fleet, clusters) = ("leaders-fleet", "leaders-clusters");
    let kubeconfig = member_kubeconfig(testbed, "token");
    apply(testbed, &[namespace(fleet), kubeconfig_secret(fleet, "one", &kubeconfig)])?;
    let flags = ["--enable=kubeconfig", "--watch-namespaces=leaders-fleet"];
    let mut first = Running::start(testbed, clusters, &flags)?;
    wait::until_true("the first to lead", SOON, || leads(&first))?;
    wait_secret(testbed, clusters, "one")?;
    let second = Running::start(testbed, clusters, &flags)?;
    let version = secret_field(testbed, clusters, "one", "/metadata/resourceVersion")?;
    ensure!(!leads(&second)?, "two lead");
    // Drops it as SIGKILL would: the Lease expires.
    drop(first.controllers.take());
    let died = Instant::now();
    apply(testbed, &[kubeconfig_secret(fleet, "two", &kubeconfig)])?;
    wait::until_true("the second to lead", TAKE_OVER, || leads(&second))?;
    wait::until("the second to register", SOON, || {
        secret_field(testbed, clusters, "two", "/metadata/name").context("not yet")
    })?;
    let took = died.elapsed();
    ensure!(took > Duration::from_secs(5), "it wrote while the first had the Lease: {took:?}");
    second.wait_state("leaders-fleet/one", "registered")?;
    ensure!(secret_field(testbed, clusters, "one", "/metadata/resourceVersion")? == version, "written again");
    // A replica that is stopped gives its Lease up, so that the next does not wait.
    let mut second = second;
    let third = Running::start(testbed, clusters, &flags)?;
    second.stop()?;
    wait::until_true("the third to lead", HANDED_ON, || leads(&third))
}
