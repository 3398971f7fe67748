//! Answers are relayed as they come: the head before any body, each event at once, a clean end as a clean end.

use std::time::Duration;

use kit::wait::within;
use serde_json::json;
use system_tests::{CLUSTER, Rig, Versions, across_versions, proxied};

across_versions!(a_head_is_relayed_before_any_body, a_watch_delivers_each_event_at_once);

/// Longer than a busy machine needs, shorter than any timer that would coalesce or flush.
const PROMPTLY: Duration = Duration::from_secs(1);

async fn a_head_is_relayed_before_any_body(versions: Versions) {
    let member = versions.member.member().await;
    let mut streams = member.streams("/api/v1/pods");
    let rig = Rig::with(&member).await;
    let mut connection = rig.connect(versions.client).await;
    let target = proxied(CLUSTER, "/api/v1/pods");
    let opening = connection.open("GET", &target, &[]);
    let answer = within(PROMPTLY, "the head, before any body", opening).await.expect("a head");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let (_, stream) = streams.next().await;
    assert!(stream.send("later").await);
    drop(stream);
    assert_eq!(answer.whole().await.expect("a clean end").text(), "later");
}

async fn a_watch_delivers_each_event_at_once(versions: Versions) {
    let member = versions.member.member().await;
    let mut streams = member.streams("/api/v1/pods");
    let rig = Rig::with(&member).await;
    let mut connection = rig.connect(versions.client).await;
    let target = proxied(CLUSTER, "/api/v1/pods?watch=true");
    let mut watch = connection.open("GET", &target, &[]).await.expect("a head");
    let (_, stream) = streams.next().await;
    for number in 0..20 {
        let event = json!({"metadata": {"resourceVersion": number}});
        assert!(stream.event("ADDED", &event).await);
        let line = within(PROMPTLY, "an event", watch.line()).await.expect("open").expect("a line");
        assert_eq!(line, format!("{}\n", json!({"object": event, "type": "ADDED"})));
    }
    drop(stream);
    assert_eq!(watch.line().await.expect("a clean end"), None);
}
