//! The system's errors, in the words that users of Go programs search for, and without its numbers:
//! wherever a connection is reset.

use kit::pki::{ALPN_H1, ALPN_H2};
use system_tests::prelude::*;

use super::assert_names_the_cluster;

/// The first bytes of a client's first message: it is reset while it sends more or waits.
const FIRST: usize = 3;

/// Asserts the answer to a request while connections are cut.
#[track_caller]
fn assert_told(place: &str, answer: &Answer, code: u16, reason: &str) {
    let message = assert_names_the_cluster(answer, code, reason);
    assert!(message.contains("connection reset by peer"), "{place}: {message}");
    let body = String::from_utf8_lossy(&answer.body);
    assert!(!body.contains("os error"), "{place}: {body}");
}

#[tokio::test]
async fn a_reset_is_told_in_go_s_words() {
    let http2 = vec![Act::Tls(ALPN_H2), Act::Read(FIRST), Act::Reset];
    let upgrades = vec![Act::Tls(ALPN_H1), Act::ReadHead, Act::Reset];
    for (place, script, code, reason) in [
        ("TLS", vec![Act::Read(FIRST), Act::Reset], 503, "ServiceUnavailable"),
        ("HTTP/2", http2, 503, "ServiceUnavailable"),
        ("HTTP/1.1", upgrades, 502, "InternalError"),
    ] {
        let member = RawMember::always(script).await;
        let testbed = Testbed::with(&member).await;
        assert_told(place, &testbed.get(&proxied(CLUSTER, "/x")).await, code, reason);
    }
}

#[tokio::test]
async fn an_upgrade_that_is_reset_is_told_in_go_s_words() {
    let member = RawMember::always(Act::reset_after_head()).await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.client().h1().await.expect("the gateway accepts connections");
    let authorization = format!("Bearer {ADMIN}");
    let target = proxied(CLUSTER, "/api/v1/namespaces/ns/pods/p/exec");
    let head = connection.upgrade("GET", &target, "websocket", &[("Authorization", &authorization)]).await;
    assert_eq!(head.expect("an answer").status, 502);
    let body = connection.body().await.expect("a whole answer");
    let body = String::from_utf8_lossy(&body);
    assert!(body.contains("connection reset by peer") && !body.contains("os error"), "{body}");
}

#[tokio::test]
async fn a_proxy_that_resets_is_told_in_go_s_words() {
    let member = Http::H2.member().await;
    for scheme in ["http", "https", "socks5"] {
        let proxy = RawMember::always(vec![Act::Read(FIRST), Act::Reset]).await;
        let secret = cluster(CLUSTER, &member).data("proxy-url", format!("{scheme}://{}", proxy.address()));
        let testbed = Testbed::builder().cluster(CLUSTER, secret).start().await;
        assert_told(scheme, &testbed.get(&proxied(CLUSTER, "/x")).await, 503, "ServiceUnavailable");
    }
}
