//! Many at a time.

use std::sync::Arc;
use std::time::Duration;

use kit::others::Moment;
use kit::wait::{WAIT, within};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tunnel_tests::{AgentSpec, Caller, Frontend, Site, Testbed, measure, testbed::CLUSTER};

/// The limit of a dial's p99 on a machine that is neither slow nor busy.
const LONGEST: Duration = Duration::from_secs(5);
/// What that limit becomes at most, on a machine that is slow or busy.
const MOST: Duration = WAIT;
/// Dials one after the other, before there are many at a time.
const ALONE: u32 = 50;

/// Opens, echoes one message, closes; how long that took.
async fn round(caller: &Caller, authority: &str, message: &[u8]) -> std::io::Result<Duration> {
    let start = Instant::now();
    let mut tunnel = caller.open(authority).await.map_err(std::io::Error::other)?;
    tunnel.write_all(message).await?;
    tunnel.shutdown().await?;
    let mut echoed = Vec::new();
    tunnel.read_to_end(&mut echoed).await?;
    if echoed == message { Ok(start.elapsed()) } else { Err(std::io::Error::other("another echo")) }
}

/// CPU time that a dial takes without others: of the caller, the server, the agent and the echo.
async fn alone(caller: &Caller, authority: &str) -> Duration {
    let machine = Moment::now().expect("/proc");
    for number in 0..ALONE {
        round(caller, authority, format!("alone {number}").as_bytes()).await.expect("an echo");
    }
    machine.spent().expect("/proc") / ALONE
}

async fn dials(kind: Frontend, dials: usize, at_a_time: usize) {
    let testbed = Testbed::builder().agent(AgentSpec::new(CLUSTER)).alone().start().await;
    let echo = Site::echo().await;
    let caller = Arc::new(testbed.caller(kind));
    let alone = alone(&caller, &echo.authority()).await;
    let machine = Moment::now().expect("/proc");
    let (mut tasks, mut times, mut started) = (JoinSet::new(), Vec::new(), 0);
    let start = Instant::now();
    while times.len() < dials {
        while started < dials && tasks.len() < at_a_time {
            let (caller, authority, message) = (caller.clone(), echo.authority(), format!("message {started}"));
            tasks.spawn(async move { round(&caller, &authority, message.as_bytes()).await });
            started += 1;
        }
        let took = within(WAIT, "a dial", tasks.join_next()).await.expect("one runs").expect("no panic");
        times.push(took.unwrap_or_else(|error| panic!("{kind:?}, after {} good ones: {error}", times.len())));
    }
    let took = start.elapsed();
    let p99 = measure::percentile(&mut times, 99);
    println!("{kind:?}: {dials} dials at {at_a_time} in {took:?}, p99 {p99:?}; one alone took {alone:?} of CPU time");
    // Slow machine: `at_a_time` dials may need one core for `alone` each. Busy machine: extended by
    // what others take. Waiting is in neither, so a dial that waits still fails.
    let needed = alone * u32::try_from(at_a_time).expect("few");
    let limit = machine.extended(LONGEST.max(needed)).expect("/proc").min(MOST);
    assert!(p99 < limit, "{p99:?}, and not {limit:?}; one alone took {alone:?} of CPU time");
    assert_eq!(echo.accepted(), dials + usize::try_from(ALONE).expect("few"));
    testbed.wait_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_dials_two_hundred_at_a_time_over_unix_sockets() {
    dials(Frontend::Uds, 1_000, 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_dials_two_hundred_at_a_time_over_one_link() {
    dials(Frontend::H2, 1_000, 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_dials_two_hundred_at_a_time_over_tls() {
    dials(Frontend::Tls, 1_000, 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_work_is_spread_evenly_over_a_clusters_agents() {
    const AGENTS: usize = 4;
    const STREAMS: usize = 200;
    let mut builder = Testbed::builder();
    for _ in 0..AGENTS {
        builder = builder.agent(AgentSpec::new(CLUSTER));
    }
    let testbed = builder.start().await;
    let echo = Site::echo().await;
    for kind in [Frontend::Uds, Frontend::H2] {
        let caller = testbed.caller(kind);
        let mut open = Vec::new();
        for _ in 0..STREAMS {
            open.push(caller.must(&echo.authority()).await);
        }
        let fair = f64::from(u32::try_from(STREAMS / AGENTS).expect("few"));
        for at in 0..AGENTS {
            let address = testbed.agent(at).admin_address();
            let (_, text) = tunnel_tests::admin::get(address, "/metrics").await.expect("metrics");
            let streams: f64 = kit::exposition::sum(&text, "tunnel_agent_streams", "");
            assert!((fair * 0.8..=fair * 1.2).contains(&streams), "{kind:?}: agent {at} has {streams}, fair is {fair}");
        }
        drop(open);
        testbed.wait_idle().await;
    }
}
