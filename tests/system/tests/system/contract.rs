//! The list of `docs/contract.md`: each requirement with a test that exists, and the few that no
//! other promise covers.

mod document;
mod settings;

use std::sync::atomic::{AtomicBool, Ordering};

use system_tests::prelude::*;

across_http!(a_stream_outlives_the_right_to_open_it);

/// Rights are looked at when a request begins, as everywhere in Kubernetes.
async fn a_stream_outlives_the_right_to_open_it(http: Http) {
    let (hub, member) = (FakeHub::start().await, http.member().await);
    let mut streams = member.streams("/api/v1/pods");
    hub.put_secret(cluster(CLUSTER, &member));
    hub.add_token("alices-token", TokenUser::new("alice", &[]));
    let revoked = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&revoked);
    hub.on_access(move |_| if seen.load(Ordering::SeqCst) { Decision::no_opinion("") } else { Decision::allow() });
    let testbed = Testbed::builder().hub(&hub).arg("--authorization-webhook-cache-authorized-ttl=0s").start().await;

    let mut connection = testbed.anonymous(http).await.bearer("alices-token");
    let target = proxied(CLUSTER, "/api/v1/pods?watch=true");
    let mut watch = connection.open("GET", &target, &[]).await.expect("a head");
    let (_, stream) = streams.next().await;
    revoked.store(true, Ordering::SeqCst);
    let mut another = testbed.anonymous(http).await.bearer("alices-token");
    another.get(&target).await.status_message(403, "Forbidden");
    assert!(stream.event("ADDED", &json!({"kind": "Pod"})).await);
    assert!(watch.event().await.contains("ADDED"));
}

/// The documented limit, in which this differs from a Go server. Nothing of it may reach a member.
#[tokio::test]
async fn a_target_beyond_64_kib_is_refused() {
    let member = Http::H2.member().await;
    let testbed = Testbed::with(&member).await;
    let target = proxied(CLUSTER, &format!("/api/v1/pods?labelSelector={}", "x".repeat(70 << 10)));
    let answer = testbed.connect(Http::H1).await.get(&target).await;
    assert_eq!(answer.status, 414);
    assert_eq!(member.request_count(), 0);
}
