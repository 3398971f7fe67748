//! Credentials that the member sees: the cluster's own, whatever the caller sends, and never the
//! caller's identity.

use kit::member::Recorded;
use system_tests::{
    ADMIN, CLUSTER, Http, MEMBER_TOKEN, Testbed, VIEWER, Versions, across_http, across_versions, proxied,
};

use super::agreeable;

across_versions!(identity_never_crosses);
across_http!(headers_named_in_connection_neither_hide_an_identity_nor_drop_a_credential);

/// A member sees the cluster's own credential, once, and nothing of the caller's.
#[track_caller]
fn assert_only_our_credential(request: &Recorded) {
    assert_eq!(request.header_values("authorization"), [format!("Bearer {MEMBER_TOKEN}")]);
    for name in request.headers.keys() {
        let plain = name.as_str().replace('_', "-");
        assert!(!plain.starts_with("x-remote-") && !plain.starts_with("impersonate-"), "{name} crossed");
    }
    let lines = format!("{:?}", request.headers);
    assert!(!lines.contains(ADMIN) && !lines.contains(VIEWER), "a caller's token crossed: {lines}");
}

async fn identity_never_crosses(versions: Versions) {
    let member = agreeable(versions.member).await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(versions.client).await;
    let headers = [
        ("x-remote-user", "system:admin"),
        ("x-remote-group", "system:masters"),
        ("x-remote-uid", "0"),
        ("x-remote-extra-scopes", "all"),
        ("x_remote_user", "system:admin"),
        ("x-remote_group", "system:masters"),
        ("impersonate-user", "viewer"),
        ("impersonate-group", "developers"),
        ("impersonate-uid", "2"),
        ("impersonate-extra-reason", "test"),
        ("impersonate_user", "system:admin"),
        ("impersonate_group", "system:masters"),
    ];
    let answer = connection.call("GET", &proxied(CLUSTER, "/x"), &headers, b"").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_only_our_credential(&member.next_request().await);
}

async fn headers_named_in_connection_neither_hide_an_identity_nor_drop_a_credential(member: Http) {
    let member = agreeable(member).await;
    let testbed = Testbed::with(&member).await;
    let nominating = "Authorization, Impersonate-User , X-Remote-User,Via, X-Forwarded-For, Host";
    let headers = [("Connection", ""), ("Connection", nominating), ("Impersonate-User", "viewer")];

    let mut connection = testbed.connect(Http::H1).await;
    let answer = connection.call("GET", &proxied(CLUSTER, "/x"), &headers, b"").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let request = member.next_request().await;
    assert_only_our_credential(&request);
    assert_eq!(request.authority, Some(member.address().to_string()));

    let refused = testbed.connect(Http::H1).await.call("POST", &proxied(CLUSTER, "/x"), &headers, b"{}").await;
    assert!(refused.status_message(403, "Forbidden").contains("\"viewer\""), "{}", refused.text());
    let mut stranger = testbed.anonymous(Http::H1).await;
    let spoofed = [("Connection", "X-Remote-User"), ("X-Remote-User", "admin"), ("X-Remote-Group", "system:masters")];
    stranger.call("GET", &proxied(CLUSTER, "/x"), &spoofed, b"").await.status_message(403, "Forbidden");
    assert_eq!(member.request_count(), 1);
}

#[tokio::test]
async fn a_caller_without_the_right_reaches_no_member() {
    let member = agreeable(Http::H2).await;
    let testbed = Testbed::with(&member).await;
    for http in [Http::H1, Http::H2] {
        let mut viewer = testbed.anonymous(http).await.bearer(VIEWER);
        assert_eq!(viewer.get(&proxied(CLUSTER, "/x")).await.status, 200);
        member.next_request().await;
        let answer = viewer.call("DELETE", &proxied(CLUSTER, "/x"), &[], b"").await;
        let message = answer.status_message(403, "Forbidden");
        assert!(message.contains("viewer") && message.contains("clustergateways"), "{message}");
        testbed.anonymous(http).await.get(&proxied(CLUSTER, "/x")).await.status_message(403, "Forbidden");
        let wrong = testbed.anonymous(http).await.bearer("wrong").get(&proxied(CLUSTER, "/x")).await;
        wrong.status_message(401, "Unauthorized");
    }
    assert_eq!(member.request_count(), 2, "only what was allowed arrived");
}
