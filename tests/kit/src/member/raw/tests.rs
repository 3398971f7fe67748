//! Each fault is what its name says, as a client sees it.

use std::io::ErrorKind;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::client::{Client, H1Connection, H1Error};
use crate::pki::{ALPN_H1, Trust};
use crate::wait::Gate;

fn client(member: &RawMember) -> Client {
    Client::new(member.address(), Trust::Authority(member.authority()), None)
}

async fn ask(script: Vec<Act>) -> (RawMember, H1Connection) {
    let member = RawMember::always(script).await;
    let mut h1 = client(&member).h1().await.expect("h1");
    h1.request("GET", "/version", &[("X-A", "b")], b"").await.expect("sent");
    (member, h1)
}

#[tokio::test]
async fn a_reset_is_seen_as_one() {
    let (member, mut h1) = ask(Act::reset_after_head()).await;
    let Err(H1Error::Io(error)) = h1.head().await else { panic!("an answer after a reset") };
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(member.next_head().await, "GET /version HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n\r\n");

    let member = RawMember::always(Act::reset_on_accept()).await;
    let error = client(&member).h1().await.expect_err("reset in the handshake");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert!(member.until(0, |connection| connection.ended).await.received.is_empty());
}

#[tokio::test]
async fn a_close_without_an_answer_is_not_a_reset() {
    let (_member, mut h1) = ask(Act::close_after_head()).await;
    let error = h1.head().await.expect_err("no answer");
    assert!(matches!(error, H1Error::NoAnswer), "{error:?}");
}

#[tokio::test]
async fn cut_bodies_are_cut() {
    let (_member, mut h1) = ask(Act::half_content_length()).await;
    assert_eq!(h1.head().await.expect("a head").header("content-length"), Some("10"));
    let error = h1.body().await.expect_err("cut");
    assert!(matches!(error, H1Error::Truncated(5)), "{error:?}");

    let (_member, mut h1) = ask(Act::half_chunked()).await;
    h1.head().await.expect("a head");
    assert_eq!(h1.chunk().await.expect("whole").as_deref(), Some(&b"hello"[..]));
    let error = h1.chunk().await.expect_err("cut");
    assert!(matches!(error, H1Error::Truncated(5)), "{error:?}");
}

#[tokio::test]
async fn abandoning_is_a_close_without_close_notify() {
    let answer = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall or not";
    let (_member, mut h1) = ask(Act::answer(answer, Act::Abandon)).await;
    h1.head().await.expect("a head");
    let Err(H1Error::Io(error)) = h1.body().await else { panic!("TLS has to notice the truncation") };
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    let (_member, mut h1) = ask(Act::answer(answer, Act::Close)).await;
    h1.head().await.expect("a head");
    assert_eq!(h1.body().await.expect("a proper end"), "all or not");
}

#[tokio::test]
async fn a_silent_member_accepts_tcp_and_hangs_in_the_handshake() {
    let member = RawMember::always(Act::silent()).await;
    let client = client(&member);
    let attempt = client.h1();
    assert!(tokio::time::timeout(std::time::Duration::from_millis(200), attempt).await.is_err());
    assert_eq!(member.connection_count(), 1);
}

#[tokio::test]
async fn an_upgrade_brings_its_first_bytes_with_the_head_and_counts_the_rest() {
    let member = RawMember::always(Act::upgrade("websocket", b"hello")).await;
    let mut h1 = client(&member).h1().await.expect("h1");
    let head = h1.upgrade("GET", "/exec", "websocket", &[]).await.expect("an answer");
    assert_eq!((head.status, h1.leftover()), (101, &b"hello"[..]));
    assert_eq!(h1.read_exact(5).await.expect("the first bytes"), "hello");
    h1.send("ping").await.expect("sent");
    assert_eq!(h1.read_exact(4).await.expect("echoed"), "ping");
    h1.shutdown().await.expect("closed");
    assert_eq!(h1.read_to_end().await.expect("a proper end"), "");
    drop(h1);
    let seen = member.until(0, |connection| connection.ended).await;
    assert!(seen.caller_closed && seen.received.ends_with(b"ping"));
    assert_eq!(seen.bytes_out, (head.raw.len() + 9) as u64);
}

#[tokio::test]
async fn refused_upgrades_carry_their_headers_and_body() {
    let script =
        Act::refuse_upgrade("403 Forbidden", "X-Accepted-Stream-Protocol-Versions: v4.channel.k8s.io\r\n", "no");
    let member = RawMember::always(script).await;
    let mut h1 = client(&member).h1().await.expect("h1");
    let head = h1.upgrade("POST", "/exec", "SPDY/3.1", &[]).await.expect("an answer");
    assert_eq!((head.status, head.reason.as_str()), (403, "Forbidden"));
    assert_eq!(h1.body().await.expect("whole"), "no");
}

#[tokio::test]
async fn a_script_waits_for_its_gate_and_differs_by_connection() {
    let gate = Gate::new();
    let waits = gate.clone();
    let member = RawMember::start(move |number| match number {
        0 => Act::reset_on_accept(),
        _ => vec![
            Act::Tls(ALPN_H1),
            Act::ReadHead,
            Act::Wait(waits.clone()),
            Act::write("HTTP/1.1 204 No Content\r\n\r\n"),
            Act::Read(4),
            Act::Close,
        ],
    })
    .await;
    client(&member).h1().await.expect_err("the first is reset");
    let mut h1 = client(&member).h1().await.expect("the second is not");
    h1.request("GET", "/", &[], b"").await.expect("sent");
    member.next_head().await;
    assert_eq!(member.connections()[1].bytes_out, 0);
    gate.open();
    assert_eq!(h1.head().await.expect("an answer").status, 204);
    h1.send("done").await.expect("sent");
    assert_eq!(h1.read_to_end().await.expect("a proper end"), "");
}

#[tokio::test]
async fn a_function_serves_a_connection_to_its_end() {
    let serve = Act::serve(|mut io| async move {
        io.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await?;
        io.flush().await?;
        io.read_exact(&mut [0; 4]).await?;
        io.shutdown().await
    });
    let member = RawMember::always(vec![Act::Tls(ALPN_H1), Act::ReadHead, serve]).await;
    for (number, leaves) in [false, true].into_iter().enumerate() {
        let mut h1 = client(&member).h1().await.expect("h1");
        h1.request("GET", "/", &[], b"").await.expect("sent");
        assert_eq!(h1.head().await.expect("an answer").status, 204);
        if !leaves {
            h1.send("done").await.expect("sent");
            assert_eq!(h1.read_to_end().await.expect("a proper end"), "");
        }
        drop(h1);
        assert_eq!(member.until(number, |connection| connection.ended).await.caller_closed, leaves);
    }
}
