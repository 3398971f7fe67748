//! The cost of an idle connection.

use std::sync::Arc;
use std::time::Duration;

use kit::wait::{becomes, eventually};
use tokio::task::JoinSet;
use tunnel_tests::testbed::{CLUSTER, REST};
use tunnel_tests::{AgentSpec, Caller, Frontend, Site, Testbed, Tunnel, measure};

/// Each has four descriptors in this process over a Unix socket (both ends of the client's and of
/// the destination's).
const CONNECTIONS: usize = 1_000;
/// Together longer than the allocator keeps unused memory.
const ROUNDS_TO_REST: usize = 12;

async fn open(caller: &Caller, site: &Site) -> Vec<Tunnel> {
    let mut open = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        open.push(caller.must(&site.authority()).await);
    }
    open
}

async fn cost(kind: Frontend, most: u64, gives_back: bool) {
    let mut testbed = Testbed::builder().agent(AgentSpec::new(CLUSTER)).alone().start().await;
    let site =
        Site::start(|mut socket| async move { tokio::io::copy(&mut socket, &mut tokio::io::sink()).await }).await;
    let caller = Arc::new(testbed.caller(kind));
    drop(caller.must(&site.authority()).await); // warms up
    testbed.wait_idle().await;
    let descriptors = measure::descriptors();
    let before = memory_at_rest(&caller, &site).await;
    let connections = open(&caller, &site).await;
    let full = measure::resident();
    let each = full.saturating_sub(before) / CONNECTIONS as u64;
    println!(
        "{kind:?}: {each} bytes for each of {CONNECTIONS} idle connections, client, server, agent and destination"
    );
    assert!(each < most, "{kind:?}: {each} bytes for each idle connection");

    drop(connections);
    testbed.wait_idle().await;
    eventually(REST, || site.open() == 0).await;
    let what = format!("descriptors to fall to about {descriptors}");
    becomes(REST, what, async || measure::descriptors() <= descriptors + 8).await;
    // Memory that is not given back to the system is used again.
    let again = open(&caller, &site).await;
    let grown = measure::resident().saturating_sub(full) / CONNECTIONS as u64;
    println!("{kind:?}: {grown} bytes more for each when they come again");
    assert!(grown < most / 4, "{kind:?}: memory of closed connections is not used again: {grown} bytes for each");
    drop(again);
    testbed.wait_idle().await;
    testbed.waits();
    if gives_back {
        assert_memory_falls(&caller, &site, before, full).await;
    }
}

async fn assert_memory_falls(caller: &Arc<Caller>, site: &Site, before: u64, full: u64) {
    let most = full - (full - before) / 4;
    becomes(2 * REST, format!("memory to fall from {} to {} KiB", full >> 10, most >> 10), async || {
        come_by(caller, site).await;
        measure::resident() < most
    })
    .await;
}

/// Resident bytes once other tests' leftovers have been given back.
async fn memory_at_rest(caller: &Arc<Caller>, site: &Site) -> u64 {
    let mut last = u64::MAX;
    becomes(2 * REST, "memory to stop falling", async || {
        for _ in 0..ROUNDS_TO_REST {
            come_by(caller, site).await;
        }
        let before = last;
        last = measure::resident();
        last >= before - before / 100
    })
    .await;
    last
}

/// The allocator gives back memory that was not used for a second when its threads come by next: so
/// they are kept coming by.
async fn come_by(caller: &Arc<Caller>, site: &Site) {
    let mut dials = JoinSet::new();
    for _ in 0..32 {
        let (caller, authority) = (caller.clone(), site.authority());
        dials.spawn(async move { drop(caller.must(&authority).await) });
    }
    dials.join_all().await;
    tokio::time::sleep(Duration::from_millis(100)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_unix_socket_clients_cost_little_and_give_it_back() {
    cost(Frontend::Uds, 48 << 10, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_streams_cost_little() {
    cost(Frontend::H2, 40 << 10, false).await;
}
