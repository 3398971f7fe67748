//! After the 101: no byte is lost, from either side and at any time, and the end of one side is the
//! end of the other.

use bytes::Bytes;
use kit::client::H1Connection;
use kit::pki::ALPN_H1;
use system_tests::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{EXEC, SPDY, exec, upgrade};

across_dialects!(
    bytes_sent_together_with_the_101_arrive,
    bytes_sent_together_with_the_request_head_arrive,
    a_megabyte_crosses_both_ways_at_once,
    what_the_member_sent_before_it_closed_arrives,
    what_the_client_sent_before_it_closed_arrives,
    an_idle_upgrade_ends_when_the_client_goes,
    an_idle_upgrade_ends_when_the_member_goes,
    a_client_that_leaves_before_the_answer_takes_the_members_connection_with_it,
);

const SWITCHING: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

/// Bytes in which a lost or doubled piece shows.
fn noise(length: usize) -> Bytes {
    let step = |seed: &mut u32| {
        *seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some(seed.to_be_bytes()[0])
    };
    std::iter::repeat(()).scan(7, |seed, ()| step(seed)).take(length).collect()
}

async fn read_exact(connection: &mut H1Connection, bytes: usize) -> Bytes {
    connection.read_exact(bytes).await.expect("the upgraded stream goes on")
}

async fn bytes_sent_together_with_the_101_arrive(dialect: Dialect) {
    let member = RawMember::always(Act::upgrade("websocket", b"first frame")).await;
    let testbed = dialect.testbed(&member).await;
    let mut connection = exec(dialect, &testbed).await;
    assert_eq!(read_exact(&mut connection, 11).await, "first frame");
    connection.send("and back").await.unwrap();
    assert_eq!(read_exact(&mut connection, 8).await, "and back");
}

async fn bytes_sent_together_with_the_request_head_arrive(dialect: Dialect) {
    let member = RawMember::always(Act::upgrade("websocket", b"")).await;
    let testbed = dialect.testbed(&member).await;
    let early = noise(32 << 10);
    let head = format!(
        "GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAuthorization: Bearer {ADMIN}\r\n\r\n",
        dialect.path(EXEC)
    );
    let mut connection = dialect.client(&testbed).h1().await.unwrap();
    connection.send([head.as_bytes(), &early].concat()).await.unwrap();
    assert_eq!(connection.head().await.unwrap().status, 101);
    assert_eq!(read_exact(&mut connection, early.len()).await, early);
}

async fn a_megabyte_crosses_both_ways_at_once(dialect: Dialect) {
    for (method, protocol) in [("GET", "websocket"), ("POST", SPDY)] {
        let member = RawMember::always(Act::upgrade(protocol, b"")).await;
        let testbed = dialect.testbed(&member).await;
        let (connection, head) = upgrade(dialect, &testbed, method, EXEC, protocol).await;
        assert_eq!(head.status, 101);
        let sent = noise(1 << 20);
        let (io, leftover) = connection.into_parts();
        let (mut reader, mut writer) = tokio::io::split(io);
        let mut received = leftover.to_vec();
        received.resize(sent.len(), 0);
        let exchange = async {
            let (written, read) =
                tokio::join!(writer.write_all(&sent), reader.read_exact(&mut received[leftover.len()..]));
            written.expect("the gateway takes everything");
            read.expect("everything comes back");
        };
        within(WAIT, "a megabyte there and back", exchange).await;
        assert!(received == sent, "{protocol}: what came back is not what was sent");
    }
}

async fn what_the_member_sent_before_it_closed_arrives(dialect: Dialect) {
    // The exit status of an exec travels in the last frame. A process that dies leaves no TLS
    // close_notify.
    for last in [Act::Close, Act::Abandon] {
        let tail = noise(1 << 20);
        let answer = [SWITCHING.as_bytes(), &tail].concat();
        let member = RawMember::always(vec![Act::Tls(ALPN_H1), Act::ReadHead, Act::write(answer), last]).await;
        let testbed = dialect.testbed(&member).await;
        let mut connection = exec(dialect, &testbed).await;
        assert!(read_exact(&mut connection, tail.len()).await == tail, "the tail differs");
        assert!(connection.read().await.is_ok_and(|rest| rest.is_empty()), "the end reaches the client");
    }
}

async fn what_the_client_sent_before_it_closed_arrives(dialect: Dialect) {
    let reads = Gate::new();
    let script =
        vec![Act::Tls(ALPN_H1), Act::ReadHead, Act::write(SWITCHING), Act::Wait(reads.clone()), Act::ReadToEnd];
    let member = RawMember::always(script).await;
    let testbed = dialect.testbed(&member).await;
    let mut connection = exec(dialect, &testbed).await;
    let tail = noise(128 << 10);
    connection.send(&tail).await.unwrap();
    connection.shutdown().await.unwrap();
    drop(connection);
    reads.open();
    let seen = member.until(0, |connection| connection.caller_closed).await;
    assert!(seen.received.ends_with(&tail), "the member got {} bytes", seen.received.len());
}

async fn an_idle_upgrade_ends_when_the_client_goes(dialect: Dialect) {
    let member = RawMember::always(Act::upgrade("websocket", b"")).await;
    let testbed = dialect.testbed(&member).await;
    drop(exec(dialect, &testbed).await);
    member.until(0, |connection| connection.caller_closed).await;
}

async fn an_idle_upgrade_ends_when_the_member_goes(dialect: Dialect) {
    let leaves = Gate::new();
    let script = vec![Act::Tls(ALPN_H1), Act::ReadHead, Act::write(SWITCHING), Act::Wait(leaves.clone()), Act::Reset];
    let member = RawMember::always(script).await;
    let testbed = dialect.testbed(&member).await;
    let mut connection = exec(dialect, &testbed).await;
    leaves.open();
    let end = connection.read().await;
    assert!(end.as_ref().is_err() || end.as_ref().is_ok_and(Bytes::is_empty), "{end:?}");
}

async fn a_client_that_leaves_before_the_answer_takes_the_members_connection_with_it(dialect: Dialect) {
    let script = vec![Act::Tls(ALPN_H1), Act::ReadHead, Act::ReadToEnd];
    let member = RawMember::always(script).await;
    let testbed = dialect.testbed(&member).await;
    let mut connection = dialect.client(&testbed).h1().await.unwrap();
    let authorization = format!("Bearer {ADMIN}");
    let headers = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Authorization", authorization.as_str())];
    connection.request("GET", &dialect.path(EXEC), &headers, b"").await.unwrap();
    member.next_head().await;
    drop(connection);
    member.until(0, |connection| connection.caller_closed).await;
}
