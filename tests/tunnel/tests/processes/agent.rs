//! An agent that is killed, frozen, or asked to end.

use std::time::Duration;

use kit::exposition;
use kit::wait::{WAIT, becomes, eventually, timely, within};
use tokio::io::AsyncReadExt as _;
use tokio::time::Instant;
use tunnel::ClusterName;
use tunnel_tests::testbed::CLUSTER;
use tunnel_tests::{AgentSpec, Frontend, Site, Testbed, Tunnel, admin};

use crate::process::{A_SECOND, Process, assert_echoes, assert_reset};

/// How long an agent may take to link.
const LINKED: Duration = Duration::from_secs(20);
/// The sum of the two keepalive settings, and a busy machine's share: TCP by itself would take a
/// quarter of an hour.
const FROZEN: Duration = Duration::from_secs(28);
/// Less than any dial is given.
const AT_ONCE: Duration = Duration::from_secs(5);

fn is_linked(testbed: &Testbed) -> bool {
    testbed.server(0).registry().is_linked(&ClusterName::parse(CLUSTER).expect("a name"))
}

/// A server, and an agent that is a process.
async fn with_agent(spec: &AgentSpec) -> (Testbed, Process) {
    let testbed = Testbed::builder().start().await;
    let process = Process::agent(&testbed.agent_arguments(spec));
    eventually(LINKED, || links(&testbed) == spec.links).await;
    (testbed, process)
}

fn links(testbed: &Testbed) -> usize {
    let clusters = testbed.server(0).registry().list();
    clusters.iter().flat_map(|cluster| &cluster.agents).map(|agent| agent.links.len()).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_killed_in_mid_transfer_is_a_reset_within_a_second() {
    timely(A_SECOND, "resets of all transfers", killed_in_mid_transfer).await;
}

/// Returns the time until all transfers were reset.
async fn killed_in_mid_transfer() -> Duration {
    let (testbed, agent) = with_agent(&AgentSpec::new(CLUSTER)).await;
    let flood = Site::flood().await;
    let mut transfers = Vec::new();
    for kind in [Frontend::Tls, Frontend::H2, Frontend::Tls, Frontend::H2] {
        let mut tunnel = testbed.caller(kind).must(&flood.authority()).await;
        tunnel.read_exact(&mut vec![0; 1 << 20]).await.expect("the transfer runs");
        transfers.push(tunnel);
    }
    agent.signal("KILL");
    let start = Instant::now();
    for tunnel in &mut transfers {
        assert_reset(tunnel).await;
    }
    // The streams were on one of its links; the other ends at the same time.
    eventually(WAIT, || !is_linked(&testbed)).await;
    let took = start.elapsed();
    let answer = testbed.caller(Frontend::Tls).refused(&flood.authority()).await;
    assert_eq!(answer.status, 503, "{answer:?}");
    took
}

/// As long as for users: ten seconds of silence, ten more for an answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_frozen_is_withdrawn_within_twenty_seconds_and_comes_back() {
    let (testbed, agent) = with_agent(&AgentSpec::new(CLUSTER)).await;
    let target = testbed.api_server.authority();
    let mut open = testbed.caller(Frontend::H2).must(&target).await;
    assert_echoes(&mut open).await;
    agent.signal("STOP");
    let start = Instant::now();
    eventually(FROZEN, || !is_linked(&testbed)).await;
    assert_reset(&mut open).await;
    assert!(start.elapsed() < FROZEN, "{:?}", start.elapsed());
    for kind in Frontend::ALL {
        let start = Instant::now();
        let answer = testbed.caller(kind).refused(&target).await;
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(start.elapsed() < AT_ONCE, "dials fail fast: {:?}", start.elapsed());
    }
    agent.signal("CONT");
    eventually(LINKED, || links(&testbed) == 2).await;
    let mut again = testbed.caller(Frontend::H2).must(&target).await;
    assert_echoes(&mut again).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_asked_to_end_lets_its_streams_end_while_dials_go_elsewhere() {
    let (mut testbed, agent) = with_agent(&AgentSpec::new(CLUSTER)).await;
    let target = testbed.api_server.authority();
    let callers = testbed.callers();
    let mut open = Vec::new();
    for caller in &callers {
        open.push(caller.must(&target).await);
    }
    testbed.add_agent(&AgentSpec::new(CLUSTER)).await;
    let metrics = testbed.agent(0).admin_address();
    agent.signal("TERM");
    eventually(WAIT, || links(&testbed) == 4 && usable(&testbed) == 2).await;
    told_of_leaving(&open).await;
    let mut new = Vec::new();
    for _ in 0..10 {
        for kind in Frontend::ALL {
            new.push(testbed.caller(kind).must(&target).await);
        }
    }
    becomes(WAIT, "all new streams at the other agent", async || {
        let (_, text) = admin::get(metrics, "/metrics").await.expect("it answers");
        exposition::sum::<u64>(&text, "tunnel_agent_streams", "") == 30
    })
    .await;
    for tunnel in open.iter_mut().chain(&mut new) {
        assert_echoes(tunnel).await;
    }
    drop(open);
    let (status, took) = agent.ended(WAIT).await;
    assert!(status.success(), "{status}");
    assert!(took < Duration::from_secs(5), "of thirty seconds: {took:?}");
    for tunnel in &mut new {
        assert_echoes(tunnel).await;
    }
}

/// A frontend that runs requests of its own in a stream learns that it will not last.
async fn told_of_leaving(open: &[Tunnel]) {
    let mut told = 0;
    for tunnel in open {
        if let Tunnel::H2(stream) = tunnel {
            let leaving = stream.leaving().expect("who opened it is told");
            within(WAIT, "word that the agent is leaving", leaving.cancelled()).await;
            told += 1;
        }
    }
    assert_eq!(told, 1);
}

fn usable(testbed: &Testbed) -> usize {
    let clusters = testbed.server(0).registry().list();
    let links = clusters.iter().flat_map(|cluster| &cluster.agents).flat_map(|agent| &agent.links);
    links.filter(|link| link.usable).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_asked_to_end_resets_what_is_left_at_its_deadline() {
    let (testbed, agent) = with_agent(&AgentSpec::new(CLUSTER).flag("--drain-timeout=2s")).await;
    let mut open = testbed.caller(Frontend::Tls).must(&testbed.api_server.authority()).await;
    agent.signal("TERM");
    eventually(WAIT, || usable(&testbed) == 0).await;
    assert_echoes(&mut open).await;
    assert_reset(&mut open).await;
    let (_, took) = agent.ended(WAIT).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
}
