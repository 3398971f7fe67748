//! A side that does not read stops no other stream, holds a bounded amount, and frees it when it
//! leaves.

use std::time::Duration;

use kit::wait::{WAIT, becomes, eventually, within};
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tunnel_tests::testbed::{Builder, CLUSTER};
use tunnel_tests::{AgentSpec, Frontend, Site, Testbed, Tunnel, measure, pattern};

/// Differences below this are the machine's.
const FLOOR: Duration = Duration::from_millis(2);
/// Comparisons; one of them has to hold.
const ATTEMPTS: usize = 5;
/// A write that takes longer than this waits for a reader.
const STUCK: Duration = Duration::from_millis(500);
/// A cluster, server and agent of the same testbed that nothing disturbs: the measure of "idle" on
/// this machine now.
const CALM: &str = "calm";
/// More than all streams of a test can hold. Windows grow where answers are slow to come, as they
/// are on a busy machine, and a hundred large ones hold more than an agent may by default: then
/// some are reset, as they should be.
const AMPLE: &str = "--max-held-bytes=4Gi";

fn testbed() -> Builder {
    let calm = AgentSpec { servers: vec![1], ..AgentSpec::new(CALM) };
    let disturbed = AgentSpec { servers: vec![0], ..AgentSpec::new(CLUSTER) }.flag(AMPLE);
    Testbed::builder().servers(2).agent(disturbed).agent(calm).alone()
}

/// An echo beside the stalled streams takes no more than twice as long as one that has a server and
/// an agent to itself: medians of rounds taken in turns, so that other load of the machine affects
/// both.
async fn assert_undisturbed(testbed: &Testbed, kind: Frontend, what: &str) {
    let echo = Site::echo().await;
    let mut calm = testbed.caller_of(1, kind, Some(CALM)).must(&echo.authority()).await;
    // A stream that is held up is held up each time; a machine that is busy is not.
    for attempt in 1.. {
        let start = Instant::now();
        let mut disturbed = testbed.caller(kind).must(&echo.authority()).await;
        let dial = start.elapsed();
        let (idle, beside) = within(WAIT, "echoes", compare(&mut calm, &mut disturbed)).await;
        println!("{what} over {kind:?}: echo p99 {beside:?} (idle {idle:?}), new dial {dial:?}");
        if beside <= (idle * 2).max(FLOOR) && dial < Duration::from_secs(1) {
            break;
        }
        assert!(attempt < ATTEMPTS, "{what} over {kind:?}: {beside:?}, idle {idle:?}, new dial {dial:?}");
    }
}

async fn compare(calm: &mut Tunnel, disturbed: &mut Tunnel) -> (Duration, Duration) {
    let (mut idle, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        idle.push(measure::echo_p99(calm, 100).await.expect("an echo"));
        beside.push(measure::echo_p99(disturbed, 100).await.expect("an echo"));
    }
    (measure::median(&mut idle), measure::median(&mut beside))
}

/// Waits until no byte moves any more at the first server.
async fn settled(testbed: &Testbed) {
    let mut last = -1.0;
    becomes(WAIT, "all streams to be stalled", async || {
        tokio::time::sleep(Duration::from_millis(150)).await;
        let now = testbed.metric("tunnel_server_relayed_bytes_total").await;
        std::mem::replace(&mut last, now).to_bits() == now.to_bits() && now > 0.0
    })
    .await;
}

async fn open_all(testbed: &Testbed, kind: Frontend, site: &Site, streams: usize) -> Vec<Tunnel> {
    let caller = testbed.caller(kind);
    let mut open = Vec::new();
    for _ in 0..streams {
        open.push(caller.must(&site.authority()).await);
    }
    open
}

async fn clients_that_never_read(kind: Frontend, streams: usize) {
    let testbed = testbed().server_flag(AMPLE).start().await;
    let flood = Site::flood().await;
    let before = measure::resident();
    let stalled = open_all(&testbed, kind, &flood, streams).await;
    settled(&testbed).await;
    let grown = measure::resident().saturating_sub(before) >> 20;
    println!("{streams} stalled clients over {kind:?}: memory grew by {grown} MiB");
    // One window in the server, one in the agent, one in this process' own client.
    assert!(grown <= 4 * streams as u64 + 64, "{grown} MiB for {streams} stalled streams");
    assert_undisturbed(&testbed, kind, &format!("{streams} clients that never read")).await;
    drop(stalled);
    eventually(WAIT, || flood.open() == 0).await;
    testbed.wait_idle().await;
}

async fn destinations_that_never_read(kind: Frontend, streams: usize) {
    let testbed = testbed().server_flag(AMPLE).start().await;
    let sink = Site::sink().await;
    let mut writers = JoinSet::new();
    for mut tunnel in open_all(&testbed, kind, &sink, streams).await {
        writers.spawn(async move {
            let mut sent = 0;
            while let Ok(written) = tokio::time::timeout(STUCK, tunnel.write(pattern::at(sent, 64 << 10))).await {
                sent += written.expect("open") as u64;
            }
            tunnel
        });
    }
    let stalled = writers.join_all().await;
    settled(&testbed).await;
    assert_undisturbed(&testbed, kind, &format!("{streams} destinations that never read")).await;
    for tunnel in stalled {
        tunnel.reset();
    }
    if kind == Frontend::Uds {
        // Bytes in a closed Unix socket are delivered as long as a reader may yet take them, for
        // minutes: `bridge` tests that.
        drop(sink);
    } else {
        eventually(WAIT, || sink.open() == 0).await;
    }
    testbed.wait_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_never_read_disturb_nobody() {
    for kind in Frontend::ALL {
        clients_that_never_read(kind, 100).await;
    }
    clients_that_never_read(Frontend::H2, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn destinations_that_never_read_disturb_nobody() {
    for kind in Frontend::ALL {
        destinations_that_never_read(kind, 100).await;
    }
    destinations_that_never_read(Frontend::H2, 1).await;
}

/// More than may be held: those that hold most give way, with a reset, and all others go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_worst_give_way_when_too_much_is_held() {
    const BUDGET: u32 = 16 << 20;
    let testbed = testbed().server_flag(format!("--max-held-bytes={BUDGET}")).start().await;
    let flood = Site::flood().await;
    let caller = testbed.caller(Frontend::H2);
    let mut stalled = Vec::new();
    for _ in 0..60 {
        // It may be its turn to give way before it has heard that it is open.
        stalled.extend(caller.open(&flood.authority()).await.ok());
    }
    becomes(WAIT, "streams to give way", async || testbed.metric("tunnel_server_sheds_total").await >= 1.0).await;
    settled(&testbed).await;
    let held = testbed.metric("tunnel_server_held_bytes").await;
    assert!(held <= f64::from(BUDGET) * 1.1, "{held} bytes held of {BUDGET}");
    assert!(flood.open() < 60 && flood.open() > 0, "{} of 60 are left", flood.open());
    assert_undisturbed(&testbed, Frontend::H2, "shed streams").await;
    drop(stalled);
    testbed.wait_idle().await;
}
