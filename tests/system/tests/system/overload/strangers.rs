//! Connections of clients that have not shown who they are: few, and not for long.

use std::time::Duration;

use kit::wait::{WAIT, becomes, unless_quiet, within};
use system_tests::frames::{SETTINGS, encode};
use system_tests::{CLUSTER, Http, proxied};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::{FAST, Fixture};

/// Connections that one address may have.
const MOST_OF_ONE: usize = 256;
/// When a connection without a request ends.
const FIRST_REQUEST: Duration = Duration::from_secs(15);
/// When one ends that does not begin to speak TLS, or then HTTP/2.
const TLS_OR_PREFACE: Duration = Duration::from_secs(10);
/// On a busy machine, and less than between the two.
const LATE: Duration = Duration::from_millis(4500);
const PATIENCE: Duration = Duration::from_secs(35);

#[tokio::test]
async fn the_oldest_of_an_address_give_way_and_those_who_are_known_stay() {
    let fixture = Fixture::with(&[]).await;
    let mut bob = fixture.connect(Http::H2, "bob").await;
    assert_eq!(bob.get(&proxied(CLUSTER, FAST)).await.status, 200);
    let client = fixture.testbed.client();
    let mut oldest = client.h1().await.expect("a connection");
    // Without TLS: a slow machine may take longer for so many handshakes than the first may wait.
    let mut between = Vec::new();
    for _ in 1..MOST_OF_ONE {
        between.push(TcpStream::connect(client.address()).await.expect("a connection"));
    }
    let mut newest = client.h1().await.expect("a connection");
    let end = within(WAIT, "the end of the oldest", oldest.read_to_end()).await;
    assert!(end.is_err() || end.is_ok_and(|bytes| bytes.is_empty()));
    assert!(unless_quiet(Duration::from_millis(300), newest.read()).await.is_none(), "the newest stays");
    assert_eq!(bob.get(&proxied(CLUSTER, FAST)).await.status, 200, "on the same connection");
    assert_eq!(fixture.connect(Http::H2, "alice").await.get(&proxied(CLUSTER, FAST)).await.status, 200);
    // Callers' connections are strangers' for a moment: each may have taken the oldest's place.
    let told = ended_connections(&fixture, "room").await;
    assert!((1..=4).contains(&told), "{told} connections gave way");
}

/// A probe has no user, and a request whose head is not whole is none. Each ends when its time is
/// over: not before, when a slow client would be about to authenticate.
#[tokio::test]
async fn a_connection_without_a_request_ends_after_a_while() {
    let fixture = Fixture::with(&[]).await;
    let client = fixture.testbed.client();
    let mut probing = fixture.testbed.anonymous(Http::H1).await;
    assert_eq!(probing.get("/healthz").await.status, 200);
    // The gateway begins to count after this.
    let began = Instant::now();
    let without_tls = async {
        let mut tcp = TcpStream::connect(client.address()).await.expect("a connection");
        ended(began, &mut tcp).await
    };
    // HTTP/2 was agreed on, and is not spoken.
    let without_preface = async {
        let mut connection = client.raw(&["h2"]).await.expect("a connection");
        ended(began, &mut connection).await
    };
    let without_request = async {
        let connection = client.h2().await.expect("a connection");
        let open = Instant::now();
        timeout(PATIENCE, connection.closed()).await.expect("it ends").ok();
        [began.elapsed(), open.elapsed()]
    };
    let without_end = async {
        let mut connection = client.raw(&["http/1.1"]).await.expect("a connection");
        connection.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n").await.expect("sent");
        ended(began, &mut connection).await
    };
    let took = tokio::join!(without_tls, without_preface, without_request, without_end);
    for (what, [most, least], limit) in [
        ("TLS", took.0, TLS_OR_PREFACE),
        ("preface", took.1, TLS_OR_PREFACE),
        ("request", took.2, FIRST_REQUEST),
        ("end of the head", took.3, FIRST_REQUEST),
    ] {
        assert!(most >= limit && least < limit + LATE, "without {what}: between {least:?} and {most:?}");
    }
    assert_eq!(probing.get("/healthz").await.status, 200, "it had a request");
    for (reason, count) in [("tls", 1), ("preface", 1), ("first_request", 2), ("room", 0), ("frames", 0)] {
        assert_eq!(ended_connections(&fixture, reason).await, count, "{reason}");
    }
}

/// An operator sees at which limit clients' connections end, and how many.
#[tokio::test]
async fn connections_that_say_what_nobody_takes_count() {
    let fixture = Fixture::with(&[]).await;
    let client = fixture.testbed.client();
    let mut connection = client.raw(&["http/1.1"]).await.expect("a connection");
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(2 << 20));
    // It may be ended in the middle.
    let _ = connection.write_all(head.as_bytes()).await;
    becomes(WAIT, "the long head counts", async || ended_connections(&fixture, "head").await == 1).await;
    let mut connection = client.raw(&["h2"]).await.expect("a connection");
    let flood = encode(SETTINGS, 0, 0, &[]).repeat(3000);
    let _ = connection.write_all(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), flood].concat()).await;
    becomes(WAIT, "the flood counts", async || ended_connections(&fixture, "frames").await == 1).await;
}

/// Number of connections that the gateway ended so far at the limit `reason`.
async fn ended_connections(fixture: &Fixture, reason: &str) -> u64 {
    let metrics = fixture.connect(Http::H2, "root").await.get("/metrics").await.text();
    let name = format!("cluster_gateway_client_connections_ended_total{{reason=\"{reason}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok()).expect("a count")
}

/// Time until nothing more can come, however much came before that: since `began`, and since this
/// connection is open.
async fn ended(began: Instant, connection: &mut (impl AsyncRead + Unpin)) -> [Duration; 2] {
    let open = Instant::now();
    let mut rest = Vec::new();
    let _ = timeout(PATIENCE, connection.read_to_end(&mut rest)).await.expect("it ends");
    assert!(!rest.starts_with(b"HTTP/1.1 2"), "no answer");
    [began.elapsed(), open.elapsed()]
}
