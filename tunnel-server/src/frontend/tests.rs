//! Tests of admission, of how long it lasts, and of the drain.

use std::os::unix::fs::PermissionsExt as _;

use kit::pki::{Authority, Leaf};
use kit::wait::{becomes, eventually, within};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tunnel::{ClusterName, Destination, Hop, Link, OpenError, Reason, Refusal, Settings, Stream};

use crate::testing::{BUDGET, Bench, DIALLED, SOON, shared};
use links::Limits;

fn to(host: &str) -> Destination {
    Destination::new(host, 443).expect("a destination")
}

async fn open(link: &Link, host: &str) -> Result<Stream, OpenError> {
    let cluster = ClusterName::parse("east").expect("a name");
    within(SOON, "an answer", link.open(&to(host), Some(&cluster))).await
}

fn refusal(opened: Result<Stream, OpenError>) -> Refusal {
    match opened {
        Err(OpenError::Refused(refusal)) => refusal,
        other => panic!("no refusal: {other:?}"),
    }
}

async fn echoes(stream: &mut Stream) {
    stream.write_all(b"hello").await.expect("sent");
    let mut back = [0; 5];
    within(SOON, "an echo", stream.read_exact(&mut back)).await.expect("echoed");
    assert_eq!(&back, b"hello");
}

#[tokio::test]
async fn only_the_frontends_authority_opens_the_door() {
    let bench = Bench::start().await;
    let stranger = Authority::new("agents").issue(&Leaf::client("system:tunnel-agent:east"));
    let expired = bench.authority.issue(&Leaf::client("late").expired());
    for identity in [None, Some(&stranger), Some(&expired)] {
        // In TLS 1.3 the first read reports that the server refused the client's certificate.
        let end = match bench.tls(identity, &["http/1.1"]).await {
            Ok(mut stream) => {
                let _ = stream.write_all(b"CONNECT east:443 HTTP/1.1\r\n\r\n").await;
                within(SOON, "an end", stream.read(&mut [0; 64])).await.map(drop)
            }
            Err(error) => Err(error),
        };
        let error = end.expect_err("refused").to_string();
        assert!(error.contains("alert") || error.contains("reset"), "{error}");
    }
    eventually(SOON, || bench.metrics_text().contains("connections_refused_total{reason=\"tls\"} 3")).await;
    echoes(&mut open(&bench.gateway().await, "a.member").await.expect("opened")).await;
}

#[tokio::test]
async fn streams_outlive_a_rotation_and_former_certificates_open_none() {
    let mut bench = Bench::start().await;
    let gateway = bench.gateway().await;
    let mut stream = open(&gateway, "a.member").await.expect("opened");
    echoes(&mut stream).await;
    bench.rotate();
    becomes(SOON, "the new CA is in force", async || open(&gateway, "a.member").await.is_err()).await;
    let refused = refusal(open(&gateway, "a.member").await);
    assert_eq!((refused.hop, refused.reason), (Hop::Server, Reason::Forbidden));
    echoes(&mut stream).await;
    echoes(&mut open(&bench.gateway().await, "a.member").await.expect("the new certificate is good")).await;

    // Half a file changes nothing.
    std::fs::write(bench.ca_file(), "-----BEGIN CERTIFICATE-----\n").expect("written");
    eventually(SOON, || bench.metrics_text().contains("reload_failures_total{file=\"client-ca\"} 1")).await;
    echoes(&mut open(&bench.gateway().await, "a.member").await.expect("the last good file counts")).await;
}

#[tokio::test]
async fn refusals_travel_to_the_gateway_with_their_hop() {
    let bench = Bench::start().await;
    let gateway = bench.gateway().await;
    let refused = refusal(open(&gateway, "closed.member").await);
    assert_eq!((refused.hop, refused.reason), (Hop::Agent, Reason::Unreachable));
    assert!(refused.message.contains("connection refused"), "{refused}");
    let west = ClusterName::parse("west").expect("a name");
    let refused = refusal(within(SOON, "an answer", gateway.open(&to("a"), Some(&west))).await);
    assert_eq!((refused.hop, refused.reason), (Hop::Server, Reason::UnknownCluster));
    assert!(refused.message.contains("west"), "{refused}");
}

#[tokio::test]
async fn a_gateway_is_told_how_long_the_agent_took() {
    let bench = Bench::start().await;
    let gateway = bench.gateway().await;
    let timing = open(&gateway, "timed.member").await.expect("opened").timing();
    assert!(timing.dial() == Some(DIALLED) && timing.agent().is_some_and(|took| !took.is_zero()), "{timing:?}");
    let timing = open(&gateway, "a.member").await.expect("opened").timing();
    assert!(timing.dial().is_none() && timing.agent().is_some(), "an older agent: {timing:?}");
}

#[tokio::test]
async fn a_gateway_that_gives_up_cancels_the_dial() {
    let mut bench = Bench::start().await;
    let gateway = bench.gateway().await;
    let dial = tokio::spawn(async move { open(&gateway, "hole.member").await });
    eventually(SOON, || bench.shared.registry.streams() == 1).await;
    dial.abort();
    assert!(within(SOON, "a cancelled dial", bench.agent.cancelled.recv()).await.is_some());
    eventually(SOON, || bench.shared.registry.streams() == 0).await;
}

#[tokio::test]
async fn one_connection_has_so_many_streams_and_no_more() {
    let bench = Bench::with(shared(Limits { streams_per_frontend: 2, ..Limits::default() }, None)).await;
    let (gateway, other) = (bench.gateway().await, bench.gateway().await);
    let first = open(&gateway, "a.member").await.expect("opened");
    let _second = open(&gateway, "a.member").await.expect("opened");
    let refused = refusal(open(&gateway, "a.member").await);
    assert_eq!((refused.hop, refused.reason), (Hop::Server, Reason::Limit));
    let _others = open(&other, "a.member").await.expect("nobody else notices");
    drop(first);
    eventually(SOON, || bench.shared.registry.streams() == 2).await;
    // The permit is released a moment after the stream.
    becomes(SOON, "room again", async || open(&gateway, "a.member").await.is_ok()).await;
}

#[tokio::test]
async fn the_unix_socket_takes_http2_too_and_its_file_goes_with_it() {
    let bench = Bench::start().await;
    let path = bench.uds().to_owned();
    assert_eq!(std::fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o660);
    let link = Link::start(bench.unix().await, &Settings::default(), Hop::Server).await.expect("HTTP/2");
    echoes(&mut open(&link, "a.member").await.expect("opened")).await;
    bench.frontends.drain();
    eventually(SOON, || !path.exists()).await;
}

#[tokio::test]
async fn draining_asks_everybody_to_leave_and_cuts_nobody() {
    let bench = Bench::start().await;
    let gateway = bench.gateway().await;
    let mut stream = open(&gateway, "a.member").await.expect("opened");
    let mut unix = bench.unix().await;
    unix.write_all(b"CONNECT east:443 HTTP/1.1\r\n\r\n").await.expect("sent");
    let mut answer = [0; 39];
    within(SOON, "the answer", unix.read_exact(&mut answer)).await.expect("answered");

    bench.frontends.drain();
    within(SOON, "GOAWAY", gateway.leaving()).await;
    assert!(matches!(open(&gateway, "a.member").await, Err(OpenError::NotSent(_))));
    eventually(SOON, || std::os::unix::net::UnixStream::connect(bench.frontends.uds().expect("a path")).is_err()).await;
    echoes(&mut stream).await;
    unix.write_all(b"still").await.expect("sent");
    let mut back = [0; 5];
    within(SOON, "an echo", unix.read_exact(&mut back)).await.expect("echoed");

    // The drain has nothing to wait for once the streams have ended.
    drop((stream, unix));
    assert!(within(SOON, "the end", bench.shared.drain.finish(SOON)).await);
}

#[tokio::test]
async fn what_has_not_ended_by_the_deadline_is_reset() {
    let bench = Bench::start().await;
    let gateway = bench.gateway().await;
    let mut stream = open(&gateway, "a.member").await.expect("opened");
    let mut tls = bench.tls(Some(&bench.certificate()), &[]).await.expect("admitted");
    tls.write_all(b"CONNECT east:443 HTTP/1.1\r\n\r\n").await.expect("sent");
    let mut answer = [0; 39];
    within(SOON, "the answer", tls.read_exact(&mut answer)).await.expect("answered");
    assert!(!bench.shared.drain.finish(std::time::Duration::from_millis(50)).await);
    let error = within(SOON, "a reset", stream.read(&mut [0; 8])).await.expect_err("no clean end");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let error = within(SOON, "a reset", tls.read(&mut [0; 8])).await.expect_err("no clean end");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn the_stream_that_holds_the_most_gives_way_and_nobody_else() {
    let bench = Bench::start().await;
    let gateway = bench.gateway().await;
    let mut echo = open(&gateway, "a.member").await.expect("opened");
    let _stalled = open(&gateway, "flood.member").await.expect("opened");
    eventually(SOON, || bench.shared.budget.held() > BUDGET / 2).await;
    assert_eq!(bench.shared.budget.sheds(), 0);
    let _another = open(&gateway, "flood.member").await.expect("opened");
    eventually(SOON, || bench.metrics_text().contains("streams_ended_total{cluster=\"east\",end=\"cut\"} 1")).await;
    assert!(bench.metrics_text().contains("tunnel_server_sheds_total 1"), "{}", bench.metrics_text());
    echoes(&mut echo).await;
}

/// Ten thousand idle tunnels take this size ten thousand times.
#[tokio::test]
async fn a_connection_is_small() {
    let bench = Bench::start().await;
    let origin = || crate::relay::Origin::local(None);
    let unix = super::connection::http1(bench.shared.clone(), origin(), bench.unix().await, bytes::BytesMut::new());
    let size = size_of_val(&unix);
    assert!(size <= 2048, "{size}");
}

#[tokio::test]
async fn who_shows_no_certificate_keeps_nobody_out() {
    // The Unix socket's listener holds one permit for its next connection.
    let limits = Limits { frontends: 5, handshakes: 12, handshakes_per_address: 8, ..Limits::default() };
    let bench = Bench::with(shared(limits, None)).await;
    let address = bench.frontends.address().expect("there is one");
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(tokio::net::TcpStream::connect(address).await.expect("connected"));
    }
    let promptly = std::time::Duration::from_secs(5);
    let gateway = within(promptly, "the gateway's connection", bench.gateway()).await;
    echoes(&mut open(&gateway, "a.member").await.expect("opened")).await;
    // The oldest connections gave way to younger ones and to the gateway.
    eventually(SOON, || bench.metrics_text().contains("connections_refused_total{reason=\"shed\"} 33")).await;
    assert!(matches!(within(SOON, "being closed", silent[0].read(&mut [0])).await, Ok(0) | Err(_)));

    // Only connections with a certificate take a permit. The server closes one that finds no
    // permit.
    let mut admitted = Vec::new();
    for _ in 0..3 {
        admitted.push(within(promptly, "another", bench.gateway()).await);
    }
    let mut one_more = bench.tls(Some(&bench.certificate()), &["http/1.1"]).await.expect("a handshake");
    assert!(matches!(within(SOON, "being closed", one_more.read(&mut [0])).await, Ok(0) | Err(_)));
    eventually(SOON, || bench.metrics_text().contains("connections_refused_total{reason=\"limit\"} 1")).await;
}
