//! Members that cannot be reached or do not prove who they are: nothing is sent, and the Status
//! says why in words that existing clients look for (`dial tcp`).

use kit::member::BlackHole;
use kit::wait::free_port;
use system_tests::prelude::*;

use super::assert_names_the_cluster;

across_http!(a_refused_connection_is_503, a_black_hole_is_504_after_the_dial_timeout, a_broken_handshake_is_503);

/// A Secret that points to `url` and trusts `ca`.
pub(super) fn secret(url: &str, ca: &str) -> ClusterSecret {
    ClusterSecret::new("vela-system", CLUSTER).endpoint(url).ca(ca).token(MEMBER_TOKEN)
}

/// A testbed whose only cluster is this one.
pub(super) async fn testbed(secret: ClusterSecret) -> Testbed {
    Testbed::builder().cluster(CLUSTER, secret).start().await
}

/// As [`testbed`], with little patience: for members that do not answer at all.
async fn impatient(secret: ClusterSecret) -> Testbed {
    Testbed::builder().cluster(CLUSTER, secret).arg("--dial-timeout=300ms").start().await
}

/// Asserts that a request is refused as unreachable; returns the message.
pub(super) async fn assert_unreachable(testbed: &Testbed, client: Http, code: u16, reason: &str) -> String {
    let target = proxied(CLUSTER, "/api/v1/pods");
    let mut connection = testbed.connect(client).await;
    let message = assert_names_the_cluster(&connection.get(&target).await, code, reason);
    assert!(message.contains("dial tcp"), "{message}");
    let answer = connection.call("POST", &target, &[], b"{}").await;
    assert_names_the_cluster(&answer, code, reason);
    message
}

async fn a_refused_connection_is_503(client: Http) {
    let url = format!("https://127.0.0.1:{}", free_port().await);
    let testbed = testbed(secret(&url, &Authority::new("ca").root_pem())).await;
    let message = assert_unreachable(&testbed, client, 503, "ServiceUnavailable").await;
    assert!(message.contains("refused"), "{message}");
}

async fn a_black_hole_is_504_after_the_dial_timeout(client: Http) {
    let hole = BlackHole::start().await;
    let testbed = impatient(secret(&format!("https://{}", hole.address()), &Authority::new("ca").root_pem())).await;
    let message = assert_unreachable(&testbed, client, 504, "Timeout").await;
    assert!(message.contains("timeout"), "{message}");
}

async fn a_broken_handshake_is_503(client: Http) {
    let member = RawMember::always(Act::reset_on_accept()).await;
    assert_unreachable(&testbed(cluster(CLUSTER, &member)).await, client, 503, "ServiceUnavailable").await;
    let member = RawMember::always(vec![Act::write("HTTP/1.1 400 Bad Request\r\n\r\n"), Act::Close]).await;
    let message =
        assert_unreachable(&testbed(cluster(CLUSTER, &member)).await, client, 503, "ServiceUnavailable").await;
    assert!(message.contains("tls"), "{message}");
}

#[tokio::test]
async fn a_handshake_that_never_ends_is_504() {
    let member = RawMember::always(Act::silent()).await;
    let message = assert_unreachable(&impatient(cluster(CLUSTER, &member)).await, Http::H2, 504, "Timeout").await;
    assert!(message.contains("tls"), "{message}");
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_503() {
    let secret = secret("https://member.invalid:6443", &Authority::new("ca").root_pem());
    let testbed = Testbed::builder().cluster(CLUSTER, secret).start().await;
    let message = assert_unreachable(&testbed, Http::H2, 503, "ServiceUnavailable").await;
    assert!(message.contains("member.invalid"), "{message}");
}

#[tokio::test]
async fn certificates_that_prove_nothing_are_refused_and_nothing_is_sent() {
    let healthy = || Leaf::server("kube-apiserver");
    let stranger = Authority::new("somebody-else").root_pem();
    for (fault, leaf, trusted) in [
        ("another authority", healthy(), Some(stranger)),
        ("another name", healthy().without_sans().san("other.example"), None),
        ("no name", healthy().without_sans(), None),
        ("expired", healthy().expired(), None),
        ("not valid yet", healthy().not_yet_valid(), None),
        ("a client's certificate", Leaf::client("kube-apiserver").san("127.0.0.1"), None),
    ] {
        let member = FakeMember::start(MemberOptions { serving: leaf, ..MemberOptions::default() }).await;
        let testbed = testbed(secret(&member.url(), &trusted.unwrap_or_else(|| member.ca_pem()))).await;
        let message = assert_unreachable(&testbed, Http::H2, 503, "ServiceUnavailable").await;
        assert!(message.contains("tls"), "{fault}: {message}");
        assert_eq!(member.request_count(), 0, "{fault}");
    }
}

#[tokio::test]
async fn the_name_to_verify_can_be_given() {
    let leaf = Leaf::server("kube-apiserver").without_sans().san("kubernetes.default.svc");
    let member = FakeMember::start(MemberOptions { serving: leaf, ..MemberOptions::default() }).await;
    member.on_any(|_| Reply::json(200, &json!({})));
    let named = |name: &str| cluster(CLUSTER, &member).data("tls-server-name", name);
    let good = testbed(named("kubernetes.default.svc")).await;
    assert_eq!(good.get(&proxied(CLUSTER, "/x")).await.status, 200);
    let bad = testbed(named("kubernetes.other.svc")).await;
    assert_unreachable(&bad, Http::H2, 503, "ServiceUnavailable").await;
}

#[tokio::test]
async fn a_members_authority_can_be_an_intermediate_of_the_one_given() {
    let root = Authority::new("root");
    let authority = Some(Arc::new(root.intermediate("issuing")));
    let member = FakeMember::start(MemberOptions { authority, ..MemberOptions::default() }).await;
    member.on_any(|_| Reply::json(200, &json!({})));
    let testbed = testbed(secret(&member.url(), &root.root_pem())).await;
    assert_eq!(testbed.get(&proxied(CLUSTER, "/x")).await.status, 200);
}

#[tokio::test]
async fn verification_is_skipped_only_where_the_secret_says_so() {
    let leaf = Leaf::server("kube-apiserver").without_sans().expired();
    let member = FakeMember::start(MemberOptions { serving: leaf, ..MemberOptions::default() }).await;
    member.on_any(|_| Reply::json(200, &json!({})));
    let bare = || ClusterSecret::new("vela-system", CLUSTER).endpoint(&member.url()).token(MEMBER_TOKEN);
    let insecure = testbed(bare().data("insecure-skip-tls-verify", "true")).await;
    assert_eq!(insecure.get(&proxied(CLUSTER, "/x")).await.status, 200);
    let system_roots = testbed(bare()).await;
    assert_unreachable(&system_roots, Http::H2, 503, "ServiceUnavailable").await;
    assert_eq!(member.request_count(), 1);
}

#[tokio::test]
async fn a_member_that_allows_no_request_at_all_says_so() {
    let options = MemberOptions { max_concurrent_streams: 0, ..MemberOptions::default() };
    let member = FakeMember::start(options).await;
    let message =
        assert_unreachable(&testbed(cluster(CLUSTER, &member)).await, Http::H2, 503, "ServiceUnavailable").await;
    assert!(message.contains("MAX_CONCURRENT_STREAMS"), "{message}");
    assert_eq!(member.request_count(), 0);
}
