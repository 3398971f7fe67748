//! A broken connection is seen as broken, never as a proper end.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use kit::wait::{WAIT, timely, within};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::block_in_place;
use tokio::time::Instant;
use tunnel_tests::{Frontend, Site, Testbed, Tunnel};

/// In one of a few runs: a busy machine is not busy each time.
const A_SECOND: Duration = Duration::from_secs(1);

/// Reads on until the end, which has to be a reset.
async fn assert_reset(tunnel: &mut Tunnel, what: &str) {
    let end = tunnel.end(what).await;
    assert_eq!(end, Some(io::ErrorKind::ConnectionReset), "{what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_destinations_reset_is_a_reset_at_the_client() {
    let testbed = Testbed::simple().await;
    let site = Site::reset_after(Bytes::from_static(b"first")).await;
    for kind in [Frontend::Tls, Frontend::H2] {
        for _ in 0..20 {
            let mut tunnel = testbed.caller(kind).must(&site.authority()).await;
            let mut first = [0; 5];
            tunnel.read_exact(&mut first).await.expect("what was sent before");
            tunnel.write_all(b"x").await.expect("written");
            tunnel.flush().await.expect("written");
            assert_reset(&mut tunnel, &format!("a stream over {kind:?}")).await;
        }
    }
    testbed.wait_idle().await;
}

/// A server that refuses an upload answers and closes with the rest unread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_right_before_a_reset_arrives_whole() {
    const ANSWER: usize = 50_000;
    let testbed = Testbed::simple().await;
    let site = Site::reset_after(Bytes::from(vec![7; ANSWER])).await;
    for kind in Frontend::ALL {
        for _ in 0..20 {
            let mut tunnel = testbed.caller(kind).must(&site.authority()).await;
            tunnel.write_all(b"x and more that nobody reads").await.expect("written");
            tunnel.flush().await.expect("written");
            let mut heard = Vec::new();
            let end = within(WAIT, "the end", tunnel.read_to_end(&mut heard)).await;
            assert_eq!(heard.len(), ANSWER, "{kind:?}: {end:?}");
            assert_eq!(end.is_ok(), kind == Frontend::Uds, "{kind:?}: {end:?}");
        }
    }
    testbed.wait_idle().await;
}

/// A Unix socket has no reset, but it ends, and at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_destinations_reset_ends_a_unix_socket() {
    let testbed = Testbed::simple().await;
    let site = Site::reset_after(Bytes::new()).await;
    let mut tunnel = testbed.caller(Frontend::Uds).must(&site.authority()).await;
    tunnel.write_all(b"x").await.expect("written");
    let read = within(WAIT, "the end", tunnel.read(&mut [0])).await;
    assert!(!matches!(read, Ok(1)), "{read:?}");
    testbed.wait_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clients_reset_is_a_reset_at_the_destination() {
    let testbed = Testbed::simple().await;
    for kind in [Frontend::Tls, Frontend::H2] {
        let site = Site::collect().await;
        let mut tunnel = testbed.caller(kind).must(&site.authority()).await;
        tunnel.write_all(tunnel_tests::pattern::at(0, 100)).await.expect("written");
        tunnel.flush().await.expect("written");
        tunnel.reset();
        let error = site.ending().await.expect_err("no proper end");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{kind:?}");
    }
    testbed.wait_idle().await;
}

/// TLS without `close_notify` is cut off, not ended: the destination must not take it for the
/// whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tls_connection_without_its_end_is_a_reset_at_the_destination() {
    let testbed = Testbed::simple().await;
    let site = Site::collect().await;
    let mut tunnel = testbed.caller(Frontend::Tls).must(&site.authority()).await;
    tunnel.write_all(tunnel_tests::pattern::at(0, 100)).await.expect("written");
    tunnel.flush().await.expect("written");
    drop(tunnel);
    let error = site.ending().await.expect_err("no proper end");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_of_the_agent_in_mid_transfer_is_a_reset_within_a_second() {
    timely(A_SECOND, "resets of all transfers", crash_of_the_agent).await;
}

/// Returns the time until all transfers were reset.
async fn crash_of_the_agent() -> Duration {
    let mut testbed = Testbed::simple().await;
    let flood = Site::flood().await;
    let mut transfers = Vec::new();
    for kind in [Frontend::Tls, Frontend::H2, Frontend::Tls, Frontend::H2] {
        let mut tunnel = testbed.caller(kind).must(&flood.authority()).await;
        tunnel.read_exact(&mut vec![0; 1 << 20]).await.expect("the transfer runs");
        transfers.push((kind, tunnel));
    }
    let agent = testbed.take_agent(0);
    let start = Instant::now();
    block_in_place(|| drop(agent));
    for (kind, tunnel) in &mut transfers {
        assert_reset(tunnel, &format!("a transfer over {kind:?}")).await;
    }
    let took = start.elapsed();
    testbed.wait_idle().await;
    took
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_of_the_server_in_mid_transfer_is_a_reset_at_both_ends() {
    timely(A_SECOND, "resets at both ends", crash_of_the_server).await;
}

/// Returns the time until all ends were reset.
async fn crash_of_the_server() -> Duration {
    let mut testbed = Testbed::simple().await;
    let (flood, collect) = (Site::flood().await, Site::collect().await);
    let mut transfers = Vec::new();
    for kind in [Frontend::Tls, Frontend::H2] {
        let mut download = testbed.caller(kind).must(&flood.authority()).await;
        download.read_exact(&mut vec![0; 1 << 20]).await.expect("the transfer runs");
        let mut upload = testbed.caller(kind).must(&collect.authority()).await;
        tunnel_tests::pattern::write(&mut upload, 1 << 20).await.expect("the transfer runs");
        transfers.push((kind, download, upload));
    }
    let server = testbed.take_server(0);
    let start = Instant::now();
    block_in_place(|| drop(server));
    for (kind, download, _) in &mut transfers {
        assert_reset(download, &format!("a transfer over {kind:?}")).await;
        let error = collect.ending().await.expect_err("no proper end");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }
    let took = start.elapsed();
    kit::wait::eventually(WAIT, || flood.open() == 0).await;
    took
}
