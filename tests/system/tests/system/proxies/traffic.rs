//! Traffic through a proxy, and how often it is asked to connect.

use kit::proxy::{Asked, FakeProxy, ProxyKind};
use system_tests::prelude::*;

use super::{across_proxies, behind, guarded};

across_proxies!(
    a_hundred_requests_need_one_way,
    names_are_resolved_by_the_proxy,
    a_watch_streams,
    an_upgrade_goes_through_too
);

async fn a_hundred_requests_need_one_way(kind: ProxyKind) {
    for version in [Http::H1, Http::H2] {
        let (proxy, member) = (guarded(kind).await, version.member().await);
        member.on_any(|_| Reply::json(200, &json!({"from": "the member"})));
        let behind = behind(&proxy.url(), &proxy, cluster(CLUSTER, &member)).await;
        let mut connection = behind.testbed.connect(Http::H2).await;
        for number in 0..100 {
            let answer = connection.get(&proxied(CLUSTER, &format!("/{number}"))).await;
            assert_eq!((answer.status, answer.json()["from"].as_str()), (200, Some("the member")), "{}", answer.text());
        }
        let credentials = Some(("jane".to_owned(), "s3cret".to_owned()));
        assert_eq!(proxy.asked(), [Asked { destination: member.address().to_string(), credentials }]);
        assert_eq!(member.requests()[0].header("proxy-authorization"), None);
        assert_eq!(member.connections_accepted(), 1);
    }
}

async fn names_are_resolved_by_the_proxy(kind: ProxyKind) {
    let (proxy, member) = (FakeProxy::start(kind).await, Http::H2.member().await);
    member.on_any(|_| Reply::json(200, &json!({})));
    let destination = format!("member.invalid:{}", member.address().port());
    let secret = ClusterSecret::new("vela-system", CLUSTER)
        .endpoint(&format!("https://{destination}"))
        .ca(&member.ca_pem())
        .data("tls-server-name", "kubernetes.default.svc")
        .token(MEMBER_TOKEN);
    let behind = behind(&proxy.url(), &proxy, secret).await;
    let answer = behind.testbed.get(&proxied(CLUSTER, "/api")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(proxy.asked(), [Asked { destination: destination.clone(), credentials: None }]);
    assert_eq!(member.requests()[0].authority.as_deref(), Some(destination.as_str()));
}

async fn a_watch_streams(kind: ProxyKind) {
    let (proxy, member) = (FakeProxy::start(kind).await, Http::H2.member().await);
    let mut streams = member.streams("/api/v1/pods");
    let behind = behind(&proxy.url(), &proxy, cluster(CLUSTER, &member)).await;
    let mut connection = behind.testbed.connect(Http::H2).await;
    let path = proxied(CLUSTER, "/api/v1/pods?watch=true");
    let watch = connection.open("GET", &path, &[]);
    let (watch, (_, events)) = tokio::join!(watch, streams.next());
    let mut watch = watch.expect("a response");
    for number in 0..3 {
        assert!(events.event("ADDED", &json!({"number": number})).await);
        let line = watch.event().await;
        assert!(line.contains(&format!("{{\"number\":{number}}}")), "{line}");
    }
    drop(watch);
    within(WAIT, "the end of the watch at the member", events.gone()).await;
}

async fn an_upgrade_goes_through_too(kind: ProxyKind) {
    let (proxy, member) = (guarded(kind).await, RawMember::always(Act::upgrade("websocket", b"first frame")).await);
    let behind = behind(&proxy.url(), &proxy, cluster(CLUSTER, &member)).await;
    let mut connection = behind.testbed.client().h1().await.expect("the gateway accepts connections");
    let target = proxied(CLUSTER, "/api/v1/namespaces/ns/pods/p/exec?command=sh");
    let authorization = format!("Bearer {ADMIN}");
    let headers = [("Authorization", authorization.as_str())];
    let head = connection.upgrade("GET", &target, "websocket", &headers).await.expect("an answer");
    assert_eq!(head.status, 101, "{head:?}");
    assert_eq!(connection.read_exact(11).await.expect("what the member said at once"), "first frame");
    let large = vec![b'x'; 256 << 10];
    connection.send(&large).await.expect("the stream goes on");
    assert!(connection.read_exact(large.len()).await.expect("what was sent comes back") == large);
    assert_eq!(proxy.asked().len(), 1);
}
