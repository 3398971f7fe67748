//! Tests the front from a client's side, over a Unix socket and over TLS.

use kit::wait::{eventually, within};
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::answer::ESTABLISHED;
use super::*;
use crate::testing::{BANNER, Bench, SOON, shared};
use links::Limits;

fn connect_to(target: &str) -> Vec<u8> {
    format!("CONNECT {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nTunnel-Cluster: east\r\n\r\n").into_bytes()
}

/// Everything that one read returns, into a buffer with room for all of it.
async fn one_read<T: AsyncRead + Unpin>(io: &mut T) -> Vec<u8> {
    let mut buffer = vec![0; 64 * 1024];
    let length = within(SOON, "something to read", io.read(&mut buffer)).await.expect("no error");
    buffer.truncate(length);
    buffer
}

async fn rest<T: AsyncRead + Unpin>(io: &mut T) -> String {
    let mut all = Vec::new();
    within(SOON, "the end", io.read_to_end(&mut all)).await.expect("no error");
    String::from_utf8(all).expect("text")
}

async fn established<T: AsyncRead + AsyncWrite + Unpin>(io: &mut T, target: &str) {
    io.write_all(&connect_to(target)).await.expect("sent");
    assert_eq!(String::from_utf8_lossy(&one_read(io).await), String::from_utf8_lossy(ESTABLISHED));
}

#[tokio::test]
async fn bytes_go_both_ways_and_each_way_ends_by_itself() {
    let bench = Bench::start().await;
    let mut unix = bench.unix().await;
    established(&mut unix, "kubernetes.default.svc:443").await;
    unix.write_all(b"hello").await.expect("sent");
    assert_eq!(one_read(&mut unix).await, b"hello");
    unix.write_all(b"last").await.expect("sent");
    unix.shutdown().await.expect("closed for writing");
    assert_eq!(rest(&mut unix).await, "last", "the reply comes after the end of the question");

    let mut tls = bench.tls(Some(&bench.certificate()), &["http/1.1"]).await.expect("admitted");
    established(&mut tls, "kubernetes.default.svc:443").await;
    tls.write_all(b"over TLS").await.expect("sent");
    tls.shutdown().await.expect("closed for writing");
    assert_eq!(rest(&mut tls).await, "over TLS");
    eventually(SOON, || bench.shared.registry.streams() == 0).await;
    let text = bench.metrics_text();
    assert!(text.contains("tunnel_server_relayed_bytes_total{cluster=\"east\",direction=\"to_member\"} 17"), "{text}");
    assert!(text.contains("tunnel_server_streams_ended_total{cluster=\"east\",end=\"finished\"} 2"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answer_is_alone_in_its_read_two_thousand_times() {
    let bench = std::sync::Arc::new(Bench::start().await);
    let mut clients = JoinSet::new();
    for client in 0..20_u64 {
        let bench = std::sync::Arc::clone(&bench);
        clients.spawn(async move {
            for number in 0..100 {
                let mut unix = bench.unix().await;
                unix.write_all(&connect_to("banner.member:22")).await.expect("sent");
                // Clients read at once, a little later, or long after the member has sent its
                // banner.
                tokio::time::sleep(Duration::from_micros((client * 100 + number) % 40 * 50)).await;
                assert_eq!(one_read(&mut unix).await, ESTABLISHED, "{client} {number}");
                assert_eq!(one_read(&mut unix).await, BANNER, "{client} {number}");
            }
        });
    }
    within(SOON * 6, "2,000 banners", clients.join_all()).await;
}

/// Tests of `client` check the moments: here a busy machine may merge the reads.
#[tokio::test]
async fn over_tls_the_answer_comes_before_the_member_speaks() {
    let bench = Bench::start().await;
    let mut tls = bench.tls(Some(&bench.certificate()), &[]).await.expect("admitted");
    tls.write_all(&connect_to("banner.member:22")).await.expect("sent");
    let mut both = vec![0; ESTABLISHED.len() + BANNER.len()];
    within(SOON, "the answer and the banner", tls.read_exact(&mut both)).await.expect("read");
    assert_eq!(both, [ESTABLISHED, BANNER].concat());
}

#[tokio::test]
async fn a_client_that_is_slow_to_look_finds_the_answer_alone() {
    let bench = Bench::start().await;
    let mut unix = bench.unix().await;
    unix.write_all(&connect_to("banner.member:22")).await.expect("sent");
    unix.readable().await.expect("the answer is there");
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(one_read(&mut unix).await, ESTABLISHED);
    assert_eq!(one_read(&mut unix).await, BANNER);
}

#[tokio::test]
async fn what_a_client_sends_before_the_answer_is_kept() {
    let bench = Bench::start().await;
    let mut unix = bench.unix().await;
    let head = connect_to("kubernetes.default.svc:443");
    unix.write_all(&[&head[..], b"early"].concat()).await.expect("sent");
    assert_eq!(one_read(&mut unix).await, ESTABLISHED);
    unix.write_all(b", late").await.expect("sent");
    unix.shutdown().await.expect("closed for writing");
    assert_eq!(rest(&mut unix).await, "early, late");
}

#[tokio::test]
async fn a_client_that_has_sent_all_and_closed_gets_its_reply() {
    let bench = Bench::start().await;
    let mut unix = bench.unix().await;
    let head = connect_to("kubernetes.default.svc:443");
    unix.write_all(&[&head[..], b"question"].concat()).await.expect("sent");
    unix.shutdown().await.expect("closed for writing");
    assert_eq!(rest(&mut unix).await, format!("{}question", String::from_utf8_lossy(ESTABLISHED)));
}

#[tokio::test]
async fn a_client_that_leaves_cancels_the_dial() {
    let mut bench = Bench::start().await;
    let mut unix = bench.unix().await;
    unix.write_all(&connect_to("hole.member:443")).await.expect("sent");
    eventually(SOON, || bench.shared.registry.streams() == 1).await;
    drop(unix);
    assert_eq!(within(SOON, "a cancelled dial", bench.agent.cancelled.recv()).await.as_deref(), Some("hole.member"));
    eventually(SOON, || bench.shared.registry.streams() == 0).await;
    let text = bench.metrics_text();
    assert!(text.contains("{cluster=\"east\",hop=\"\",outcome=\"cancelled\"} 1"), "{text}");
}

#[tokio::test]
async fn a_member_that_closes_or_resets_is_told_apart() {
    let bench = Bench::start().await;
    let mut unix = bench.unix().await;
    established(&mut unix, "silent-close.member:443").await;
    assert_eq!(rest(&mut unix).await, "");

    let mut tls = bench.tls(Some(&bench.certificate()), &[]).await.expect("admitted");
    established(&mut tls, "reset.member:443").await;
    tls.write_all(b"x").await.expect("sent");
    let error = within(SOON, "a reset", tls.read(&mut [0; 16])).await.expect_err("no clean end");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn failures_say_why_in_the_status_line() {
    let bench = Bench::start().await;
    let long = format!("CONNECT a:1 HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(20_000));
    let mut text = String::new();
    for request in [
        "CONNECT closed.member:443 HTTP/1.1\r\nTunnel-Cluster: east\r\n\r\n",
        "CONNECT forbidden.member:443 HTTP/1.1\r\nTunnel-Cluster: east\r\n\r\n",
        "CONNECT a:443 HTTP/1.1\r\nTunnel-Cluster: west\r\n\r\n",
        "CONNECT west:443 HTTP/1.1\r\n\r\n",
        "CONNECT 10.0.0.1:443 HTTP/1.1\r\n\r\n",
        "CONNECT a:0 HTTP/1.1\r\nTunnel-Cluster: east\r\n\r\n",
        "CONNECT a:443 HTTP/1.1\r\nTunnel-Cluster: East\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        &long,
    ] {
        let mut unix = bench.unix().await;
        // The server may have answered before the client has sent everything.
        let _ = unix.write_all(request.as_bytes()).await;
        let answer = rest(&mut unix).await;
        let (line, others) = answer.split_once("\r\n").expect("a status line");
        assert!(others.contains("Connection: close\r\n"), "{answer}");
        let body = others.split_once("\r\n\r\n").expect("a body").1;
        assert!(others.contains(&format!("Content-Length: {}\r\n", body.len())), "{answer}");
        text.push_str(line);
        text.push('\n');
    }
    insta::assert_snapshot!(text);
    assert_eq!(bench.shared.registry.streams(), 0);
    let metrics = bench.metrics_text();
    assert!(!metrics.contains("west"), "what a frontend only asks for is no label\n{metrics}");
}

#[tokio::test]
async fn a_cluster_is_meant_by_its_name_or_by_default() {
    let bench = Bench::with(shared(Limits::default(), Some("east"))).await;
    for target in ["east:443", "10.0.0.1:443"] {
        let mut unix = bench.unix().await;
        unix.write_all(format!("CONNECT {target} HTTP/1.1\r\n\r\n").as_bytes()).await.expect("sent");
        assert_eq!(one_read(&mut unix).await, ESTABLISHED, "{target}");
    }
    let bench = Bench::start().await;
    let mut unix = bench.unix().await;
    unix.write_all(b"CONNECT east:6443 HTTP/1.1\r\nHost: other\r\n\r\n").await.expect("sent");
    assert_eq!(one_read(&mut unix).await, ESTABLISHED);
}

#[tokio::test]
async fn a_cluster_that_is_called_like_a_host_gets_none_of_its_connections() {
    let bench = Bench::with(shared(Limits::default(), Some("east"))).await;
    let mut others = Vec::new();
    for name in ["10.0.0.5", "webhook.shop.svc", "node-1"] {
        others.push(crate::testing::Agent::link(&bench.shared, name).await);
    }
    for target in ["10.0.0.5:10250", "10.0.0.5:443", "webhook.shop.svc:443", "node-1:10250"] {
        let mut unix = bench.unix().await;
        established(&mut unix, target).await;
    }
    let text = bench.metrics_text();
    assert!(text.contains("{cluster=\"east\",hop=\"\",outcome=\"opened\"} 4"), "{text}");
    // The header `Tunnel-Cluster` chooses that cluster.
    let mut unix = bench.unix().await;
    unix.write_all(b"CONNECT a:1 HTTP/1.1\r\nTunnel-Cluster: webhook.shop.svc\r\n\r\n").await.expect("sent");
    assert_eq!(one_read(&mut unix).await, ESTABLISHED);
    assert!(bench.metrics_text().contains("{cluster=\"webhook.shop.svc\",hop=\"\",outcome=\"opened\"} 1"));

    let bench = Bench::start().await;
    let _other = crate::testing::Agent::link(&bench.shared, "10.0.0.5").await;
    let mut unix = bench.unix().await;
    unix.write_all(b"CONNECT 10.0.0.5:443 HTTP/1.1\r\n\r\n").await.expect("sent");
    assert!(rest(&mut unix).await.starts_with("HTTP/1.1 400 no cluster is named"));
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_come_is_not_waited_for() {
    let shared = shared(Limits::default(), None);
    for said in ["", "CONNECT a:1 HT"] {
        let (mut client, server) = UnixStream::pair().expect("a pair");
        client.write_all(said.as_bytes()).await.expect("sent");
        let started = Instant::now();
        serve(&shared, &Origin::local(None), server, BytesMut::new()).await;
        assert_eq!(started.elapsed(), HEAD_TIMEOUT);
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.expect("closed");
        assert!(answer.is_empty());
    }
    assert!(shared.exposition.encode().contains("frontend_connections_refused_total{reason=\"slow\"} 2"));
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_request_does_not_hold_up_the_shutdown() {
    let shared = shared(Limits::default(), None);
    let (_client, server) = UnixStream::pair().expect("a pair");
    let started = Instant::now();
    shared.drain.start();
    serve(&shared, &Origin::local(None), server, BytesMut::new()).await;
    assert_eq!(started.elapsed(), ON_ITS_WAY);
}
