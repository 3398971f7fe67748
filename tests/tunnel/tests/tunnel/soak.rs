//! Dials, broken streams, crashes, reconnects and rotations for a while: nothing is left over.
//!
//! `SOAK_SECONDS` sets the length; a soak of ten minutes is for people who watch it.

use std::time::Duration;

use kit::pki::Leaf;
use kit::wait::becomes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::{JoinSet, block_in_place};
use tokio::time::Instant;
use tunnel_tests::measure::{descriptors, resident};
use tunnel_tests::testbed::{CLUSTER, REST};
use tunnel_tests::{AgentSpec, Caller, Frontend, Site, Testbed};

/// Enough for each agent to crash, and for thousands of streams.
const SECONDS: u64 = 6;
/// Callers that dial at the same time.
const CALLERS: usize = 8;
/// Growth of memory that is allowed between the end of the first third and the end: the allocator's
/// own ways, and nothing in proportion.
const GROWTH: u64 = 24 << 20;
/// Descriptors that come and go: connections of the moment to API servers and admin endpoints.
const SPARE_DESCRIPTORS: usize = 24;
/// The same of tasks, which tend those connections.
const SPARE_TASKS: usize = 24;
/// Those of tasks that stay: the connections of the moment have ended.
const LEFT_TASKS: usize = SPARE_TASKS / 2;

fn length() -> Duration {
    let seconds = std::env::var("SOAK_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(SECONDS))
}

/// One stream in one of the ways streams go. Agents crash meanwhile: failing is allowed, staying is
/// not.
async fn one(caller: &Caller, turn: usize, echo: &str, flood: &str) -> std::io::Result<()> {
    let target = if turn.is_multiple_of(3) { flood } else { echo };
    let mut tunnel = caller.open(target).await.map_err(std::io::Error::other)?;
    match turn % 3 {
        // Broken off while data is being sent.
        0 => {
            tunnel.read_exact(&mut vec![0; 100_000]).await?;
            tunnel.reset();
        }
        // In good order.
        1 => {
            tunnel.write_all(&[7; 5000]).await?;
            tunnel.shutdown().await?;
            tunnel.read_to_end(&mut Vec::new()).await?;
        }
        // Dropped with its echo unread.
        _ => tunnel.write_all(&[7; 5000]).await?,
    }
    Ok(())
}

/// Streams until `end`, one after the other; says how many went well.
async fn calls(callers: Vec<Caller>, first: usize, echo: String, flood: String, end: Instant) -> usize {
    let (mut turn, mut good) = (first, 0);
    while Instant::now() < end {
        good += usize::from(one(&callers[turn % callers.len()], turn, &echo, &flood).await.is_ok());
        turn += 1;
    }
    good
}

/// All quantities that may grow, when nothing is open.
async fn at_rest(testbed: &Testbed) -> (u64, usize, usize) {
    testbed.wait_idle().await;
    (resident(), descriptors(), testbed.tasks())
}

/// For a third of the time; agents crash and come back, certificates change.
async fn churn(testbed: &mut Testbed, echo: &Site, flood: &Site, length: Duration) -> usize {
    let end = Instant::now() + length;
    let mut calling = JoinSet::new();
    for first in 0..CALLERS {
        let callers = Frontend::ALL.map(|kind| testbed.caller(kind)).into();
        calling.spawn(calls(callers, first, echo.authority(), flood.authority(), end));
    }
    let mut pauses = tokio::time::interval(Duration::from_secs(2));
    let mut rounds = 0;
    while Instant::now() < end {
        pauses.tick().await;
        let crashed = testbed.take_agent(rounds % 2);
        block_in_place(|| drop(crashed));
        if rounds.is_multiple_of(3) {
            let leaf = Leaf::client(format!("system:tunnel-agent:{CLUSTER}"));
            let files = testbed.pki.agents.issue(&leaf).write_to(testbed.pki.directory(), &format!("agent-{CLUSTER}"));
            files.expect("a writable directory");
        }
        let again = testbed.start_agent(&AgentSpec::new(CLUSTER));
        testbed.put_agent(rounds % 2, again);
        rounds += 1;
    }
    let mut good = 0;
    while let Some(calls) = calling.join_next().await {
        good += calls.expect("a caller does not panic");
    }
    becomes(Duration::from_secs(20), "four links", async || testbed.metric("tunnel_server_links").await == 4.0).await;
    good
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn churn_leaves_nothing_behind() {
    let agent = AgentSpec::new(CLUSTER);
    let mut testbed = Testbed::builder().agent(agent.clone()).agent(agent).alone().start().await;
    let (echo, flood) = (Site::echo().await, Site::flood().await);
    let third = length() / 3;
    let mut good = churn(&mut testbed, &echo, &flood, third).await;
    let (resident_before, descriptors_before, tasks_before) = at_rest(&testbed).await;
    good += churn(&mut testbed, &echo, &flood, 2 * third).await;
    let (resident_after, descriptors_after, tasks_after) = at_rest(&testbed).await;
    println!(
        "{good} streams; resident {} -> {} MiB, descriptors {descriptors_before} -> {descriptors_after}, tasks {tasks_before} -> {tasks_after}",
        resident_before >> 20,
        resident_after >> 20,
    );
    assert!(good > 200, "only {good} streams went well");
    assert!(resident_after < resident_before + GROWTH, "{resident_before} -> {resident_after} bytes resident");
    assert!(
        descriptors_after <= descriptors_before + SPARE_DESCRIPTORS,
        "{descriptors_before} -> {descriptors_after} descriptors"
    );
    assert!(tasks_after <= tasks_before + SPARE_TASKS, "{tasks_before} -> {tasks_after} tasks");
    let what = format!("tasks to fall from {tasks_after} to about {tasks_before}");
    becomes(REST, what, async || testbed.tasks() <= tasks_before + LEFT_TASKS).await;
    assert_eq!((echo.open(), flood.open()), (0, 0), "connections to destinations are left");
}
