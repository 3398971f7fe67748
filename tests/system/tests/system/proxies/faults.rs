//! Proxies that refuse, fail or hang: the Status says that it was the proxy, which one, and what to
//! do, and never its password.

use kit::member::{BlackHole, Reply};
use kit::proxy::{FakeProxy, ProxyKind, ProxyOptions};
use kit::wait::{WAIT, free_port};
use serde_json::json;
use system_tests::{ADMIN, CLUSTER, Http, MEMBER_TOKEN, Testbed, cluster, proxied};

use super::{across_proxies, behind, behind_with, guarded};

across_proxies!(
    a_wrong_password_is_said_and_not_told,
    missing_credentials_are_asked_for,
    a_proxy_that_is_down_is_named,
    a_silent_proxy_is_504_after_the_dial_timeout,
    a_member_that_is_down_behind_the_proxy_is_503,
    connections_that_a_proxy_drops_are_replaced,
    another_proxy_in_the_secret_takes_over,
);

/// Asserts that neither a request nor an upgrade gets through; returns the Status' message, which
/// is the same for both.
async fn refused(testbed: &Testbed, code: u16, reason: &str) -> String {
    let target = proxied(CLUSTER, "/api/v1/namespaces/ns/pods/p/exec");
    let answer = testbed.get(&target).await;
    let message = answer.status_message(code, reason);
    let mut connection = testbed.client().h1().await.expect("the gateway accepts connections");
    let authorization = format!("Bearer {ADMIN}");
    let headers = [("Authorization", authorization.as_str())];
    let head = connection.upgrade("GET", &target, "websocket", &headers).await.expect("an answer");
    assert_eq!(head.status, code);
    let upgrade = connection.body().await.expect("a whole answer");
    let upgrade = String::from_utf8_lossy(&upgrade);
    assert!(message.contains(&format!("cluster {CLUSTER} is unreachable: dial tcp ")), "{message}");
    assert_eq!(answer.header("retry-after"), None);
    for text in [&message, upgrade.as_ref()] {
        assert!(text.contains("through the proxy "), "{text}");
        for secret in ["s3cret", "wr0ng", MEMBER_TOKEN] {
            assert!(!text.contains(secret), "{text}");
        }
    }
    message
}

async fn a_wrong_password_is_said_and_not_told(kind: ProxyKind) {
    let (proxy, member) = (guarded(kind).await, Http::H2.member().await);
    let behind = behind(&proxy.url_as("jane", "wr0ng"), &proxy, cluster(CLUSTER, &member)).await;
    let message = refused(&behind.testbed, 503, "ServiceUnavailable").await;
    assert!(message.contains("does not accept the user and password"), "{message}");
    assert!(message.contains(&proxy.address().to_string()), "{message}");
    assert_eq!(member.connections_accepted(), 0);
}

async fn missing_credentials_are_asked_for(kind: ProxyKind) {
    let (proxy, member) = (guarded(kind).await, Http::H2.member().await);
    let url = proxy.url().replace("jane:s3cret@", "");
    let behind = behind(&url, &proxy, cluster(CLUSTER, &member)).await;
    let message = refused(&behind.testbed, 503, "ServiceUnavailable").await;
    assert!(message.contains("requires a user and password"), "{message}");
}

async fn a_proxy_that_is_down_is_named(kind: ProxyKind) {
    let (proxy, member) = (FakeProxy::start(kind).await, Http::H2.member().await);
    let (url, down) = (proxy.url(), format!("127.0.0.1:{}", free_port().await));
    let url = url.replace(&proxy.address().to_string(), &down);
    let behind = behind(&url, &proxy, cluster(CLUSTER, &member)).await;
    let message = refused(&behind.testbed, 503, "ServiceUnavailable").await;
    assert!(message.contains(&format!("through the proxy {url}: the proxy is unreachable")), "{message}");
    assert_eq!(member.connections_accepted(), 0, "nothing goes past the proxy");
}

async fn a_silent_proxy_is_504_after_the_dial_timeout(kind: ProxyKind) {
    let options = ProxyOptions { silent: true, ..ProxyOptions::default() };
    let (proxy, member) = (FakeProxy::with(kind, options).await, Http::H2.member().await);
    let impatient = |builder: system_tests::TestbedBuilder| builder.arg("--dial-timeout=1s");
    let silent = behind_with(&proxy.url(), &proxy, cluster(CLUSTER, &member), impatient).await;
    let message = refused(&silent.testbed, 504, "Timeout").await;
    assert!(message.contains("did not answer in time"), "{message}");

    let hole = BlackHole::start().await;
    let url = proxy.url().replace(&proxy.address().to_string(), &hole.address().to_string());
    let swallowed = behind_with(&url, &proxy, cluster(CLUSTER, &member), impatient).await;
    refused(&swallowed.testbed, 504, "Timeout").await;
}

async fn a_member_that_is_down_behind_the_proxy_is_503(kind: ProxyKind) {
    let (proxy, member) = (FakeProxy::start(kind).await, Http::H2.member().await);
    let secret = cluster(CLUSTER, &member).endpoint(&format!("https://127.0.0.1:{}", free_port().await));
    let behind = behind(&proxy.url(), &proxy, secret).await;
    let message = refused(&behind.testbed, 503, "ServiceUnavailable").await;
    let expected = if kind == ProxyKind::Socks5 { "refused by the destination" } else { "502 Destination down" };
    assert!(message.contains(expected), "{message}");
}

async fn connections_that_a_proxy_drops_are_replaced(kind: ProxyKind) {
    let (proxy, member) = (FakeProxy::start(kind).await, Http::H2.member().await);
    member.on_any(|_| Reply::json(200, &json!({})));
    let behind = behind(&proxy.url(), &proxy, cluster(CLUSTER, &member)).await;
    let target = proxied(CLUSTER, "/x");
    assert_eq!(behind.testbed.get(&target).await.status, 200);
    proxy.cut();
    behind.testbed.until(WAIT, &target, |answer| answer.status == 200 && proxy.asked().len() == 2).await;
}

async fn another_proxy_in_the_secret_takes_over(kind: ProxyKind) {
    let (first, second) = (FakeProxy::start(kind).await, FakeProxy::start(ProxyKind::Http).await);
    let member = Http::H2.member().await;
    member.on_any(|_| Reply::json(200, &json!({})));
    let behind = behind(&first.url(), &first, cluster(CLUSTER, &member)).await;
    let target = proxied(CLUSTER, "/x");
    assert_eq!(behind.testbed.get(&target).await.status, 200);
    behind.testbed.register(CLUSTER, cluster(CLUSTER, &member).data("proxy-url", second.url()));
    behind.testbed.until(WAIT, &target, |answer| answer.status == 200 && second.asked().len() == 1).await;
    assert_eq!(first.asked().len(), 1);
}

#[tokio::test]
async fn bytes_that_come_with_the_answer_are_the_members() {
    // Were they lost, the handshake with the member would succeed.
    for kind in [ProxyKind::Http, ProxyKind::Https, ProxyKind::Socks5] {
        let options = ProxyOptions { early: b"HTTP/1.1 200 OK\r\n\r\n".into(), ..ProxyOptions::default() };
        let (proxy, member) = (FakeProxy::with(kind, options).await, Http::H2.member().await);
        let behind = behind(&proxy.url(), &proxy, cluster(CLUSTER, &member)).await;
        let answer = behind.testbed.get(&proxied(CLUSTER, "/x")).await;
        let message = answer.status_message(503, "ServiceUnavailable");
        assert!(message.contains("dial tcp") && message.contains("tls"), "{kind:?}: {message}");
        assert_eq!(member.request_count(), 0);
    }
}

#[tokio::test]
async fn a_proxy_whose_certificate_is_not_trusted_sees_no_password() {
    let (proxy, other) = (guarded(ProxyKind::Https).await, FakeProxy::start(ProxyKind::Https).await);
    let member = Http::H2.member().await;
    let behind = behind(&proxy.url(), &other, cluster(CLUSTER, &member)).await;
    let message = refused(&behind.testbed, 503, "ServiceUnavailable").await;
    assert!(message.contains("TLS to the proxy"), "{message}");
    assert!(proxy.asked().is_empty());
}
