//! Objects that are a nuisance: they affect no others, and their cost is bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use http::{Method, StatusCode};
use hub_tests::testbed::Testbed;
use hub_tests::{size, wait};
use hyper::body::Bytes;
use libtest_mimic::Trial;
use serde_json::json;
use tokio::time::Instant;

use crate::fixture::{
    Fixture, SOON, apply, create_refused, delete_refused, kubeconfig_secret, member_kubeconfig, namespace, print, test,
    wait_secret,
};
use crate::others::value;
use crate::program::Program;

const FLEET: &str = "hostile-fleet";
const CLUSTERS: &str = "hostile-clusters";
const NAME: &str = "hostile-controllers";
/// Secrets that are refused at the same time.
const REFUSED: usize = 1_000;
/// Pause between two changes of one Secret.
const PACE: Duration = Duration::from_millis(100);
/// Events per second.
const EVENTS: u64 = 20;
/// A period in which there is nothing to do except to send Events.
const QUIET: Duration = Duration::from_secs(5);
/// The program uses less than one part in this many of a core during that period.
const IDLE: u32 = 10;
const OBJECTS: &str = "cluster_gateway_controllers_source_objects";

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![test(
        fixture,
        "hostile: a Secret that changes all the time, and a thousand that are refused at once",
        nuisance,
    )]
}

fn nuisance(testbed: &Testbed) -> Result<()> {
    apply(testbed, &[namespace(FLEET), namespace(CLUSTERS)])?;
    apply(testbed, &[kubeconfig_secret(FLEET, "busy", &member_kubeconfig(testbed, "first"))])?;
    let flags = ["--enable=kubeconfig", "--watch-namespaces=hostile-fleet"];
    let mut program = Program::with_account(testbed, NAME, CLUSTERS, &flags)?;
    program.wait_to_say("leading")?;
    wait_secret(testbed, CLUSTERS, "busy")?;
    let (mark, began) = (testbed.audit.mark()?, Instant::now());
    let (is_over, changes) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| change(testbed, &is_over, &changes));
        let outcome = among_them(testbed, &program);
        is_over.store(true, Ordering::Relaxed);
        busy.join().map_err(|_| anyhow!("it panicked"))??;
        outcome
    })?;
    // The last state is registered, and no state was written twice.
    let changes = changes.load(Ordering::Relaxed);
    wait::until("the last token", SOON, || {
        let token = value(testbed, CLUSTERS, "busy", "token")?;
        ensure!(token == format!("token-{changes}"), "{token} after {changes} changes");
        Ok(())
    })?;
    is_still(testbed, &program, mark)?;
    let writes = testbed.audit.writes((CLUSTERS, NAME), mark)?;
    let count = |of: &str| u64::try_from(writes.iter().filter(|write| write.contains(of)).count());
    let (of_busy, of_events) = (count("/secrets/busy")?, count("/events")?);
    let seconds = began.elapsed().as_secs() + 1;
    let refused = refused()?;
    print(&format!("{changes} changes were {of_busy} writes, {refused} refusals {of_events} Events in {seconds} s"));
    ensure!((1..=changes).contains(&of_busy), "{of_busy} writes of {changes} changes");
    ensure!((1..=EVENTS * seconds).contains(&of_events), "{of_events} Events within {seconds} s");
    ensure!(writes.iter().all(|write| !write.contains("/secrets/no-")), "a refused one was written");
    delete_refused(testbed, FLEET, refused)?;
    testbed.hub.server.delete(&format!("secret busy beside -n {FLEET}"))
}

/// A thousand Secrets are refused, and a valid one among them is registered.
fn among_them(testbed: &Testbed, program: &Program) -> Result<()> {
    let count = refused()?;
    create_refused(testbed, FLEET, count)?;
    apply(testbed, &[kubeconfig_secret(FLEET, "beside", &member_kubeconfig(testbed, "token"))])?;
    wait_secret(testbed, CLUSTERS, "beside")?;
    wait::until("all to be refused", SOON * (1 + count / 1_000), || {
        let refused = program.metric(OBJECTS, "state=\"refused\"")?;
        ensure!(refused >= f64::from(count), "{refused}");
        Ok(())
    })
}

/// The number of Secrets to refuse.
fn refused() -> Result<u32> {
    Ok(size::of("TEST_REFUSED", REFUSED)?.try_into()?)
}

/// Refusals are not retried: without changes, there is no work.
fn is_still(testbed: &Testbed, program: &Program, mark: usize) -> Result<()> {
    let secrets = || {
        let writes = testbed.audit.writes((CLUSTERS, NAME), mark)?;
        anyhow::Ok(writes.iter().filter(|write| write.contains("/secrets/")).count())
    };
    let (written, before) = (secrets()?, program.process.cpu()?);
    let begin = Instant::now();
    // `park_timeout` may return early: a pending wake-up ends it at once.
    while let Some(left) = QUIET.checked_sub(begin.elapsed()) {
        std::thread::park_timeout(left);
    }
    let used = program.process.cpu()?.saturating_sub(before);
    print(&format!("{used:?} of a core within {QUIET:?} of quiet"));
    ensure!(used < QUIET / IDLE, "{used:?} of a core within {QUIET:?}: something goes round");
    ensure!(secrets()? == written, "a Secret was written although nothing changed");
    Ok(())
}

/// Changes the Secret's token ten times a second.
fn change(testbed: &Testbed, is_over: &AtomicBool, changes: &AtomicU64) -> Result<()> {
    let server = &testbed.hub.server;
    let mut connection = server.client(Some(server.admin())).keep()?;
    let path = format!("/api/v1/namespaces/{FLEET}/secrets/busy");
    while !is_over.load(Ordering::Relaxed) {
        let number = changes.fetch_add(1, Ordering::Relaxed) + 1;
        let kubeconfig = member_kubeconfig(testbed, &format!("token-{number}"));
        let patch = Bytes::from(json!({"stringData": {"kubeconfig": kubeconfig}}).to_string());
        let headers = [("content-type", "application/merge-patch+json")];
        connection.send(&Method::PATCH, &path, &headers, patch)?.expect(StatusCode::OK)?;
        std::thread::park_timeout(PACE);
    }
    Ok(())
}
