//! Leftovers of a cluster that is removed, replaced or wrong for a while.

use kit::exposition;
use system_tests::prelude::*;

use super::{EFFECTIVE, PATH, is_ok, member};

/// Requests made after the correction.
const REQUESTS: u64 = 20;

#[tokio::test]
async fn a_corrected_cluster_is_still_counted() {
    let member = member(MemberOptions::default()).await;
    let mut watches = member.streams("/watch");
    let testbed = Testbed::with(&member).await;
    let target = proxied(CLUSTER, PATH);
    let connection = testbed.connect(Http::H2).await;
    let watch = connection.open_beside("GET", &proxied(CLUSTER, "/watch?watch=1")).await.expect("a head");
    let (_, events) = watches.next().await;
    testbed.register(CLUSTER, ClusterSecret::new("vela-system", CLUSTER).endpoint("nonsense").token(MEMBER_TOKEN));
    testbed.until(EFFECTIVE, &target, |answer| answer.status == 503).await;
    testbed.register(CLUSTER, cluster(CLUSTER, &member));
    testbed.until(EFFECTIVE, &target, is_ok).await;
    // The last thing that belongs to the registration before the mistake.
    drop((watch, connection));
    events.gone().await;
    let before = counted(&testbed).await;
    for _ in 0..REQUESTS {
        assert_eq!(testbed.get(&target).await.status, 200);
    }
    let after = counted(&testbed).await;
    assert!(after >= before + REQUESTS, "{before}, {REQUESTS} requests, {after}");
}

/// The requests of [`CLUSTER`], as the metrics have them.
async fn counted(testbed: &Testbed) -> u64 {
    let metrics = testbed.get("/metrics").await.text();
    exposition::sum(&metrics, "cluster_gateway_requests_total", &format!("cluster=\"{CLUSTER}\""))
}

#[tokio::test]
async fn the_streams_of_a_removed_cluster_end_over_http_2() {
    streams_end(MemberOptions::default()).await;
}

#[tokio::test]
async fn the_streams_of_a_removed_cluster_end_over_http_1() {
    streams_end(MemberOptions { alpn: &["http/1.1"], ..MemberOptions::default() }).await;
}

/// A watch and an exec: they go on with another token, and end with the registration.
async fn streams_end(options: MemberOptions) {
    let member = member(options).await;
    member.on("/exec", |_| Reply::upgrade_echo("websocket"));
    let mut watches = member.streams("/watch");
    let testbed = Testbed::with(&member).await;
    let connection = testbed.connect(Http::H2).await;
    let watch = connection.open_beside("GET", &proxied(CLUSTER, "/watch?watch=1")).await.expect("a head");
    let (_, events) = watches.next().await;
    let mut exec = testbed.client().h1().await.expect("the gateway accepts connections");
    let bearer = format!("Bearer {ADMIN}");
    let headers = [("Authorization", bearer.as_str())];
    let head = exec.upgrade("GET", &proxied(CLUSTER, "/exec"), "websocket", &headers).await.expect("an answer");
    assert_eq!(head.status, 101);
    testbed.register(CLUSTER, super::secret(&member, "another"));
    let is_another =
        || member.requests().last().is_some_and(|one| one.header("authorization") == Some("Bearer another"));
    testbed.until(EFFECTIVE, &proxied(CLUSTER, PATH), |_| is_another()).await;
    exec.send("still here").await.expect("taken");
    assert_eq!(exec.read_exact(10).await.expect("the exec goes on"), "still here");
    testbed.unregister(CLUSTER);
    within(WAIT, "the end of the watch", events.gone()).await;
    assert!(within(WAIT, "the end of the exec", exec.read_exact(1)).await.is_err());
    eventually(WAIT, || member.connections_open() == 0).await;
    drop(watch);
}
