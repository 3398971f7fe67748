//! A path of a dialect that is off, or without a cluster's name: refused before the sender is
//! authenticated.

use kit::client::H1Error;
use system_tests::prelude::*;

use super::{ALICE, hub};

across_http!(what_is_off_is_not_found_whoever_asks, a_name_that_is_none_is_refused_whoever_asks);

/// A gateway with `arguments`, a hub that allows everything, and one cluster.
async fn gateway(arguments: &[&str]) -> (FakeHub, FakeMember, Testbed) {
    let (hub, member) = (hub().await, Http::H2.member().await);
    member.on_any(|_| Reply::json(200, &json!({})));
    hub.put_secret(cluster(CLUSTER, &member));
    let testbed = arguments.iter().fold(Testbed::builder().hub(&hub), |builder, argument| builder.arg(argument));
    let testbed = testbed.start().await;
    (hub, member, testbed)
}

/// No review about the sender, and no connection to the cluster.
fn assert_nobody_was_asked(hub: &FakeHub, member: &FakeMember) {
    assert_eq!((hub.token_reviews().len(), hub.access_reviews().len()), (0, 0));
    assert_eq!(member.connections_accepted(), 0);
}

async fn what_is_off_is_not_found_whoever_asks(http: Http) {
    let (hub, member, testbed) = gateway(&[]).await;
    let karmada = ["", "/v1alpha1", "/v1alpha1/clusters/c1/proxy/api", "/v1alpha1/clusters/*/proxy/api"];
    let karmada = karmada.map(|tail| format!("/apis/cluster.karmada.io{tail}"));
    let kcp = ["/clusters/c1/api", "/clusters/nowhere/api", "/clusters/*/api", "/clusters//"];
    for target in kcp.into_iter().chain(karmada.iter().map(String::as_str)) {
        for token in [None, Some(ALICE), Some("no-such-token")] {
            let mut connection = testbed.anonymous(http).await;
            if let Some(token) = token {
                connection = connection.bearer(token);
            }
            let answer = connection.get(target).await;
            let message = answer.status_message(404, "NotFound");
            assert_eq!(message, "the server could not find the requested resource", "{target} {token:?}");
        }
    }
    assert_nobody_was_asked(&hub, &member);
}

async fn a_name_that_is_none_is_refused_whoever_asks(http: Http) {
    let (hub, member, testbed) = gateway(&["--kcp-dialect", "--karmada-dialect=standalone"]).await;
    for (target, says) in [
        ("/apis/cluster.karmada.io/v1alpha1/clusters//proxy/x", "must name a cluster between /clusters/ and /proxy"),
        ("/apis/cluster.karmada.io/v1alpha1/clusters/a%2Fb/proxy", "must name a cluster between /clusters/ and /proxy"),
        ("/clusters//x", "must name a cluster after /clusters/"),
        ("/clusters/", "must name a cluster after /clusters/"),
        ("/clusters/a:b:/x", "separated by ':'"),
        ("/clusters/../x", "lower-case DNS labels"),
        ("/clusters/..", "lower-case DNS labels"),
        ("/clusters/%2e%2e/x", "lower-case DNS labels"),
        ("/clusters/a%2Fb/x", "lower-case DNS labels"),
        ("/clusters/a.b/x", "the cluster a.b.c is a:b:c"),
        ("/clusters/C1/x", "lower-case DNS labels"),
        ("/clusters/*/api", "'*' means all clusters at once"),
        ("/clusters/%2A/api", "'*' means all clusters at once"),
    ] {
        let mut connection = testbed.anonymous(http).await;
        let message = connection.get(target).await.status_message(400, "BadRequest");
        assert!(message.contains(says), "{target}: {message}");
    }
    assert_nobody_was_asked(&hub, &member);
}

/// Otherwise, a client that opens connections and sends such requests would hold a stranger's place
/// for ever.
#[tokio::test]
async fn a_connection_of_nobody_ends_and_that_of_a_user_does_not() {
    let (_hub, _member, testbed) = gateway(&["--kcp-dialect"]).await;
    let mut connection = testbed.anonymous(Http::H1).await;
    connection.get("/clusters//x").await.status_message(400, "BadRequest");
    let end = within(WAIT, "the end", connection.h1().head()).await.expect_err("the connection ends");
    assert!(matches!(end, H1Error::NoAnswer | H1Error::Io(_)), "{end:?}");

    let mut connection = testbed.anonymous(Http::H1).await.bearer(ALICE);
    assert_eq!(connection.get("/clusters/c1/api").await.status, 200);
    connection.get("/clusters//x").await.status_message(400, "BadRequest");
    assert_eq!(connection.get("/clusters/c1/api").await.status, 200);
}

/// A path is one thing in one dialect, and a path of none is reviewed as it is.
#[tokio::test]
async fn a_dialect_that_is_on_changes_no_other_path() {
    let (hub, _member, testbed) = gateway(&["--kcp-dialect"]).await;
    let mut connection = testbed.anonymous(Http::H2).await.bearer(ALICE);
    for target in ["/clusters", "/Clusters/c1/api", "//clusters/c1/api", "/clusters%2Fc1/api", "/x/clusters/c1/api"] {
        connection.get(target).await.status_message(404, "NotFound");
        let reviewed = hub.access_reviews().pop().expect("a review");
        assert_eq!(reviewed["nonResourceAttributes"], json!({"path": target, "verb": "get"}));
    }
}
