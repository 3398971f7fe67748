//! Members that begin heads and do not finish them: they give way, and no other cluster notices.

use kit::pki::{ALPN_H1, ALPN_H2};
use system_tests::prelude::*;
use tokio::task::JoinSet;

use super::FAST;
use super::held::Narrow;

const HOSTILE: &str = "hostile";
/// With a head each, some times what may be held.
const CONNECTIONS: usize = 16;
/// Size of a head that has no end.
const HEAD: usize = 700 << 10;
/// One stream at a time (RFC 9113 §6.5.2), so that each request has a connection.
const ONE_AT_A_TIME: [u8; 15] = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1];
/// Size of an HTTP/2 frame's payload.
const FRAME: usize = 16 << 10;

/// The first frames of an answer to stream 1, without the flag that ends its head.
fn unfinished_http2() -> Vec<u8> {
    let mut bytes = ONE_AT_A_TIME.to_vec();
    for number in 0..HEAD / FRAME {
        let kind = if number == 0 { 1 } else { 9 };
        bytes.extend_from_slice(&[0, 0x40, 0, kind, 0, 0, 0, 0, 1]);
        bytes.resize(bytes.len() + FRAME, 0);
    }
    bytes
}

fn unfinished_http1(bytes: usize) -> Act {
    Act::Write([b"HTTP/1.1 200 OK\r\nX: ".to_vec(), vec![b'x'; bytes]].concat().into())
}

async fn unfinished_heads_give_way(script: Vec<Act>, rest: &'static str, headers: &'static [(&str, &str)]) {
    let mut narrow = Box::pin(Narrow::start()).await;
    let member = RawMember::always(script).await;
    let secret = ClusterSecret::new("vela-system", HOSTILE).endpoint(&member.url()).ca(&member.ca_pem());
    narrow.fixture.hub.put_secret(secret.token(MEMBER_TOKEN));
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(narrow.fixture.connect(Http::H1, "alice").await);
    }
    let asking = async move {
        let mut requests = JoinSet::new();
        for mut alice in connections {
            requests.spawn(async move { alice.call("GET", &proxied(HOSTILE, rest), headers, b"").await });
        }
        // Some of them wait for ever.
        requests.join_next().await.expect("a request").expect("no panic")
    };
    let answer = Box::pin(narrow.beside(within(WAIT, "a request that is given up", asking))).await;
    let message = answer.status_message(502, "InternalError");
    assert!(
        message.contains(HOSTILE) && message.contains("--max-held-bytes") && message.contains("heads"),
        "{message}"
    );
    assert_eq!(answer.json()["details"]["causes"][0]["reason"], "Member");
    narrow.assert_within_limit().await;
}

#[tokio::test]
async fn heads_of_an_http2_member_that_are_not_whole_end_its_own_requests() {
    unfinished_heads_give_way(
        vec![Act::Tls(ALPN_H2), Act::Write(unfinished_http2().into()), Act::ReadToEnd],
        FAST,
        &[],
    )
    .await;
}

#[tokio::test]
async fn heads_of_an_http1_member_that_are_not_whole_end_its_own_requests() {
    let head = unfinished_http1(HEAD);
    unfinished_heads_give_way(vec![Act::Tls(ALPN_H1), Act::ReadHead, head, Act::ReadToEnd], FAST, &[]).await;
}

/// They are collected for their caller, which has to wait for their ends.
#[tokio::test]
async fn refusals_of_upgrades_that_do_not_end_give_way() {
    let mut narrow = Box::pin(Narrow::start()).await;
    let body = "x".repeat(HEAD);
    let refusal = format!("HTTP/1.1 403 Forbidden\r\nContent-Length: 1000000\r\n\r\n{body}");
    let member = RawMember::always(Act::answer(refusal, Act::ReadToEnd)).await;
    let secret = ClusterSecret::new("vela-system", HOSTILE).endpoint(&member.url()).ca(&member.ca_pem());
    narrow.fixture.hub.put_secret(secret.token(MEMBER_TOKEN));
    let client = narrow.fixture.testbed.client();
    let asking = async {
        let mut requests = JoinSet::new();
        for _ in 0..CONNECTIONS {
            let mut alice = client.h1().await.expect("the gateway accepts connections");
            requests.spawn(async move {
                let headers = [("Authorization", "Bearer alice")];
                alice.upgrade("GET", &proxied(HOSTILE, "/exec"), "websocket", &headers).await.expect("a head").status
            });
        }
        requests.join_next().await.expect("a request").expect("no panic")
    };
    let status = Box::pin(narrow.beside(within(WAIT, "a request that is given up", asking))).await;
    assert_eq!(status, 429);
    narrow.assert_within_limit().await;
}

#[tokio::test]
async fn heads_that_answer_upgrades_and_are_not_whole_end_these() {
    const EXEC: &str = "/api/v1/namespaces/ns/pods/p/exec?command=sh";
    let head = unfinished_http1(HEAD);
    let script = vec![Act::Tls(ALPN_H1), Act::ReadHead, head, Act::ReadToEnd];
    unfinished_heads_give_way(script, EXEC, &[("connection", "upgrade"), ("upgrade", "SPDY/3.1")]).await;
}
