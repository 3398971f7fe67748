//! Answers are relayed as they come: the head before any body, each event at once, a clean end as a
//! clean end.

use kit::wait::timely;
use system_tests::prelude::*;

use super::AT_ONCE;

across_versions!(a_head_is_relayed_before_any_body, a_watch_delivers_each_event_at_once);
across_dialects!(a_head_comes_before_any_body);

/// Shorter than any timer that would coalesce or flush.
const PROMPTLY: Duration = Duration::from_secs(1);

async fn a_head_is_relayed_before_any_body(versions: Versions) {
    head_before_body(Dialect::Native, versions).await;
}

async fn a_head_comes_before_any_body(dialect: Dialect) {
    for client in [Http::H1, Http::H2] {
        head_before_body(dialect, Versions { client, member: Http::H2 }).await;
    }
}

async fn head_before_body(dialect: Dialect, versions: Versions) {
    let member = versions.member.member().await;
    let mut streams = member.streams("/api/v1/pods");
    let testbed = dialect.testbed(&member).await;
    let mut connection = dialect.connect(&testbed, versions.client).await.bearer(ADMIN);
    let target = dialect.path("/api/v1/pods");
    let opening = connection.open("GET", &target, &[]);
    // The body does not begin before it has come.
    let answer = within(AT_ONCE, "the head, before any body", opening).await.expect("a head");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let (_, stream) = streams.next().await;
    assert!(stream.send("later").await);
    drop(stream);
    assert_eq!(answer.whole().await.expect("a clean end").text(), "later");
}

async fn a_watch_delivers_each_event_at_once(versions: Versions) {
    let member = versions.member.member().await;
    let mut streams = member.streams("/api/v1/pods");
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(versions.client).await;
    let target = proxied(CLUSTER, "/api/v1/pods?watch=true");
    let mut watch = connection.open("GET", &target, &[]).await.expect("a head");
    let (_, stream) = streams.next().await;
    timely(PROMPTLY, "the slowest of twenty events", async || {
        let mut slowest = Duration::ZERO;
        for number in 0..20 {
            let event = json!({"metadata": {"resourceVersion": number}});
            let sent = Instant::now();
            assert!(stream.event("ADDED", &event).await);
            // The next is not sent before it has come.
            let line = watch.event().await;
            slowest = slowest.max(sent.elapsed());
            assert_eq!(line, format!("{}\n", json!({"object": event, "type": "ADDED"})));
        }
        slowest
    })
    .await;
    drop(stream);
    assert_eq!(watch.line().await.expect("a clean end"), None);
}
