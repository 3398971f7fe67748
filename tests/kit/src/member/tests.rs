//! The member follows its script and records its requests, over both protocols.

use http::{Method, Version};
use serde_json::json;

use super::*;
use crate::client::{Client, H1Error};
use crate::pki::{ALPN_H1, Trust};
use crate::wait::{Gate, WAIT, eventually, free_port};

fn client(member: &FakeMember) -> Client {
    Client::new(member.address(), Trust::Authority(member.authority()), None)
}

#[tokio::test]
async fn a_request_is_recorded_byte_for_byte_over_both_protocols() {
    let member = FakeMember::start(MemberOptions::default()).await;
    member.on_any(|request| Reply::json(200, &json!({"path": request.path(), "query": request.query()})));
    let target = "/api//v1/a%2Fb/?b=2&a=1;c&watch";
    let headers = [("x-group", "b"), ("x-other", "1"), ("x-group", "a")];

    let h2 = client(&member).h2().await.expect("h2");
    let answer = h2.call(Method::POST, target, &headers, "body").await.expect("an answer");
    assert_eq!((answer.status(), answer.header("content-type")), (200, Some("application/json")));
    assert_eq!(answer.json().await, json!({"path": "/api//v1/a%2Fb/", "query": "b=2&a=1;c&watch"}));
    let mut h1 = client(&member).h1().await.expect("h1");
    h1.call("POST", target, &headers, b"body").await.expect("an answer");

    for version in [Version::HTTP_2, Version::HTTP_11] {
        let request = member.next_request().await;
        assert_eq!((request.version, request.target.as_str(), &request.method), (version, target, &Method::POST));
        assert_eq!(request.header_values("x-group"), ["b", "a"]);
        assert_eq!((request.body_ended().await, request.body()), (BodyEnd::Complete, "body".into()));
        assert_eq!(request.ended().await.0, Ending::Completed);
        assert_eq!(request.connection, request.number);
    }
    assert_eq!((member.request_count(), member.connections_accepted(), member.connections_open()), (2, 2, 2));
    assert_eq!(member.requests()[1].authority.as_deref(), Some("localhost"));
}

#[tokio::test]
async fn what_is_not_scripted_is_a_status_404() {
    let member = FakeMember::start(MemberOptions::default()).await;
    let answer = client(&member).h2().await.expect("h2").get("/nothing", &[]).await.expect("an answer");
    assert_eq!(answer.json().await["reason"], "NotFound");
}

#[tokio::test]
async fn a_caller_that_leaves_is_recorded_as_cancelled() {
    let member = FakeMember::start(MemberOptions::default()).await;
    member.on("/never", |_| Reply::Never);
    let mut watches = member.streams("/watch");

    let h2 = client(&member).h2().await.expect("h2");
    let waiting = h2.send(Method::GET, "/never", &[], true).await.expect("sent");
    let pending = member.next_request().await;
    assert_eq!(pending.ending(), None);
    waiting.reset(::h2::Reason::CANCEL);
    assert_eq!(member.cancelled().await.number, pending.number);
    assert_eq!(pending.ended().await.0, Ending::Cancelled);

    let answer = h2.get("/watch", &[]).await.expect("a head");
    let (request, stream) = watches.next().await;
    drop(answer);
    stream.gone().await;
    assert_eq!(request.ended().await.0, Ending::Cancelled);
    assert!(!stream.event("ADDED", &json!({})).await, "nobody is there");

    let mut h1 = client(&member).h1().await.expect("h1");
    h1.request("GET", "/never", &[], b"").await.expect("sent");
    let pending = loop {
        let request = member.next_request().await;
        if request.version == Version::HTTP_11 {
            break request;
        }
    };
    drop(h1);
    assert_eq!(pending.ended().await.0, Ending::Cancelled);
}

#[tokio::test]
async fn a_stream_arrives_as_it_is_sent_with_trailers_or_an_abort_at_its_end() {
    let member = FakeMember::start(MemberOptions::default()).await;
    let mut streams = member.streams("/stream");
    let h2 = client(&member).h2().await.expect("h2");
    let mut answer = h2.get("/stream", &[]).await.expect("the head comes before any data");
    let (_, stream) = streams.next().await;
    stream.event("ADDED", &json!({"n": 1})).await;
    let line = answer.body.line(&mut Vec::new()).await.expect("open").expect("whole");
    assert_eq!(line, "{\"object\":{\"n\":1},\"type\":\"ADDED\"}\n");
    stream.trailers(&[("x-end", "yes")]).await;
    assert!(answer.body.chunk().await.is_none());
    assert_eq!(answer.body.trailers().await.expect("whole").expect("trailers")["x-end"], "yes");

    let mut answer = h2.get("/stream", &[]).await.expect("a head");
    let (request, stream) = streams.next().await;
    stream.abort().await;
    let error = answer.body.chunk().await.expect("not a proper end").expect_err("aborted");
    assert_eq!((error.reason(), request.ended().await.0), (Some(::h2::Reason::INTERNAL_ERROR), Ending::Aborted));

    let mut h1 = client(&member).h1().await.expect("h1");
    h1.request("GET", "/stream", &[], b"").await.expect("sent");
    h1.head().await.expect("a head");
    let (_, stream) = streams.next().await;
    stream.send("data").await;
    assert_eq!(h1.chunk().await.expect("whole").as_deref(), Some(&b"data"[..]));
    stream.abort().await;
    let error = h1.chunk().await.expect_err("aborted");
    assert!(matches!(error, H1Error::Truncated(4) | H1Error::Io(_)), "{error:?}");
}

#[tokio::test]
async fn echo_streams_both_ways_and_early_answers_do_not_wait_for_the_body() {
    let member = FakeMember::start(MemberOptions::default()).await;
    member.on("/echo", |_| Reply::Echo);
    member.on("/early", |_| Reply::early(413, "too large"));
    let h2 = client(&member).h2().await.expect("h2");

    let exchange = h2.send(Method::POST, "/echo", &[], false).await.expect("sent");
    let mut answer = exchange.response().await.expect("the head comes before the body");
    for word in ["one", "two"] {
        answer.upload.send(word, false).await.expect("sent");
        assert_eq!(answer.body.chunk().await.expect("open").expect("whole"), word);
    }
    answer.upload.trailers(&[("x-sum", "6")]).expect("sent");
    assert!(answer.body.chunk().await.is_none());
    assert_eq!(answer.body.trailers().await.expect("whole").expect("trailers")["x-sum"], "6");
    assert_eq!(member.next_request().await.trailers().expect("trailers")["x-sum"], "6");

    let answer = h2.send(Method::POST, "/early", &[], false).await.expect("sent").response().await.expect("an answer");
    assert_eq!((answer.status(), member.next_request().await.body_bytes()), (413, 0));
    assert_eq!(answer.text().await.expect("whole"), "too large");
}

#[tokio::test]
async fn a_stalled_caller_stops_the_sender_and_a_stalled_member_stops_the_upload() {
    let member = FakeMember::start(MemberOptions::default()).await;
    member.on("/never", |_| Reply::Never);
    let mut streams = member.streams("/stream");
    let h2 = client(&member).h2().await.expect("h2");
    let mut upload = h2.send(Method::POST, "/never", &[], false).await.expect("sent");
    let sent = upload.fill(std::time::Duration::from_millis(100)).await.expect("open");
    assert_eq!(sent, 256 << 10, "the stream window of a Go server");

    let answer = h2.get("/stream", &[]).await.expect("a head");
    let (_, stream) = streams.next().await;
    let mut accepted = 0;
    let stalled = async {
        while stream.send(vec![0; 64 << 10]).await {
            accepted += 1;
        }
    };
    assert!(
        tokio::time::timeout(std::time::Duration::from_millis(200), stalled).await.is_err(),
        "the sender has to wait"
    );
    assert!((16..64).contains(&accepted), "a window of 1 MiB took {accepted} pieces of 64 KiB");
    drop(answer);
}

#[tokio::test]
async fn an_upgrade_keeps_what_follows_the_request_head() {
    let member = FakeMember::start(MemberOptions::default()).await;
    member.on("/exec", |_| Reply::upgrade_echo("SPDY/3.1"));
    let mut h1 = client(&member).h1().await.expect("h1");
    h1.send("POST /exec HTTP/1.1\r\nHost: m\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nfirst")
        .await
        .expect("sent");
    let head = h1.head().await.expect("an answer");
    assert_eq!((head.status, head.header("upgrade")), (101, Some("SPDY/3.1")));
    assert_eq!(h1.read_exact(5).await.expect("echoed"), "first");
    h1.send("then").await.expect("sent");
    assert_eq!(h1.read_exact(4).await.expect("echoed"), "then");
}

#[tokio::test]
async fn client_certificates_are_recorded_and_can_be_required() {
    let clients = Arc::new(Authority::new("clients"));
    let options = MemberOptions { client_authority: Some(clients.clone()), ..MemberOptions::default() };
    let identity = clients.issue(&Leaf::client("gateway").group("a").group("b"));

    let member = FakeMember::start(options.clone()).await;
    let with = Client::new(member.address(), Trust::Authority(member.authority()), Some(&identity));
    with.h2().await.expect("h2").get("/", &[]).await.expect("an answer");
    client(&member).h2().await.expect("h2").get("/", &[]).await.expect("an answer");
    let peer = member.next_request().await.peer.expect("a certificate");
    assert_eq!(
        (peer.common_name.as_str(), &peer.organisations[..]),
        ("gateway", &["a".to_owned(), "b".to_owned()][..])
    );
    assert_eq!(member.next_request().await.peer, None);

    let strict = FakeMember::start(MemberOptions { require_client_certificate: true, ..options }).await;
    let answer = async { client(&strict).h1().await?.call("GET", "/", &[], b"").await.map_err(std::io::Error::other) };
    answer.await.expect_err("the handshake fails");
    eventually(WAIT, || strict.refused_handshakes() == 1).await;
    assert_eq!(strict.request_count(), 0);
}

#[tokio::test]
async fn alpn_and_stream_limit_are_those_asked_for() {
    let member = FakeMember::start(MemberOptions { alpn: ALPN_H1, ..MemberOptions::default() }).await;
    client(&member).h2().await.expect_err("no common protocol");
    client(&member).h1().await.expect("h1");
    let member = FakeMember::start(MemberOptions { alpn: &[], ..MemberOptions::default() }).await;
    client(&member).h1().await.expect("h1 without ALPN").call("GET", "/", &[], b"").await.expect("an answer");
    let member = FakeMember::start(MemberOptions { max_concurrent_streams: 5, ..MemberOptions::default() }).await;
    let h2 = client(&member).h2().await.expect("h2");
    h2.get("/", &[]).await.expect("an answer");
    assert_eq!(h2.max_streams(), 5);
}

#[tokio::test]
async fn goaway_lets_requests_finish_and_closing_does_not() {
    let member = FakeMember::start(MemberOptions::default()).await;
    let gate = Gate::new();
    member.on("/slow", {
        let gate = gate.clone();
        move |_| Reply::full(200, &[], "done").after(&gate)
    });
    member.on("/never", |_| Reply::Never);
    let h2 = client(&member).h2().await.expect("h2");
    let slow = h2.send(Method::GET, "/slow", &[], true).await.expect("sent");
    member.next_request().await;
    member.goaway();
    gate.open();
    assert_eq!(slow.response().await.expect("an answer").text().await.expect("whole"), "done");
    h2.closed().await.expect("a graceful end");

    let h2 = client(&member).h2().await.expect("h2");
    let never = h2.send(Method::GET, "/never", &[], true).await.expect("sent");
    member.next_request().await;
    member.close_connections();
    never.response().await.expect_err("closed");
    eventually(WAIT, || member.connections_open() == 0).await;
}

#[tokio::test]
async fn a_dropped_member_refuses_connections_and_can_come_back() {
    let options =
        MemberOptions { address: (Ipv4Addr::LOCALHOST, free_port().await).into(), ..MemberOptions::default() };
    let member = FakeMember::start(options.clone()).await;
    let h2 = client(&member).h2().await.expect("h2");
    let before = client(&member);
    drop(member);
    let _ = h2.closed().await;
    let refused = before.h1().await.expect_err("nobody listens");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    let member = FakeMember::start(options).await;
    client(&member).h1().await.expect("back");
}

#[tokio::test]
async fn connecting_to_a_black_hole_hangs() {
    let hole = BlackHole::start().await;
    let attempt = tokio::net::TcpStream::connect(hole.address());
    assert!(tokio::time::timeout(std::time::Duration::from_millis(300), attempt).await.is_err());
}
