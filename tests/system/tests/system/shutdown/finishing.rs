//! Requests in flight come to a proper end: answers are finished, followed logs whose pods end are
//! too, watches are ended between two events.

use bytes::Bytes;
use kit::member::Ending;
use system_tests::prelude::*;
use tokio::task::JoinSet;

use super::{LONG, Leaving};

across_versions!(
    watches_end_properly,
    a_request_in_flight_is_answered,
    an_upload_in_flight_arrives_whole,
    a_followed_log_whose_pod_ends_is_whole
);

async fn watches_end_properly(versions: Versions) {
    let member = versions.member.member().await;
    let mut watches = member.streams("/api/v1/pods");
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(versions.client).await;
    let mut watch = connection.open("GET", &proxied(CLUSTER, "/api/v1/pods?watch=true"), &[]).await.unwrap();
    let (request, sender) = watches.next().await;
    assert!(sender.send("{\"type\":\"ADDED\"}\n").await);
    assert_eq!(watch.event().await, "{\"type\":\"ADDED\"}\n");

    let started = Instant::now();
    let leaving = Leaving::start(testbed).await;
    assert_eq!(watch.line().await.expect("END_STREAM, or the last chunk"), None);
    assert_eq!(request.ended().await.0, Ending::Cancelled, "the member is told, too");
    leaving.ended().await;
    assert!(started.elapsed() < LONG, "nobody waits for a watch");
}

async fn a_request_in_flight_is_answered(versions: Versions) {
    /// Each on a connection of its own, since it is the end of a connection that may cut an answer
    /// off.
    const REQUESTS: usize = 8;
    let member = versions.member.member().await;
    let gate = Gate::new();
    let opened = gate.clone();
    let answer = Bytes::from(vec![b'x'; 1 << 20]);
    let body = answer.clone();
    member.on_any(move |_| Reply::full(200, &[], body.clone()).after(&opened));
    let testbed = Testbed::with(&member).await;
    let mut asking = JoinSet::new();
    for _ in 0..REQUESTS {
        let mut connection = testbed.connect(versions.client).await;
        asking.spawn(async move { connection.try_call("GET", &proxied(CLUSTER, "/api/v1/pods"), &[], b"").await });
    }
    for _ in 0..REQUESTS {
        member.next_request().await;
    }

    let client = testbed.client();
    let leaving = Leaving::start(testbed).await;
    assert!(client.h1().await.is_err() && client.h2().await.is_err(), "nobody new is let in");
    assert!(!leaving.has_ended() && asking.try_join_next().is_none());
    gate.open();
    while let Some(whole) = asking.join_next().await {
        let whole = whole.unwrap().expect("a whole answer");
        assert!(whole.status == 200 && whole.body == answer);
    }
    leaving.ended().await;
}

async fn an_upload_in_flight_arrives_whole(versions: Versions) {
    let member = versions.member.member().await;
    member.on_any(|_| Reply::full(201, &[], "created"));
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(versions.client).await;
    let mut upload = connection.upload("POST", &proxied(CLUSTER, "/api/v1/pods"), &[]).await.unwrap();
    upload.send(&b"first half, "[..]).await.unwrap();
    let request = member.next_request().await;
    request.body_reached(12).await;

    let leaving = Leaving::start(testbed).await;
    upload.send(&b"second half"[..]).await.unwrap();
    let answer = upload.answer().await.unwrap();
    assert_eq!((answer.status, answer.text()), (201, "created".to_owned()));
    assert_eq!(request.body(), "first half, second half");
    leaving.ended().await;
}

across_http!(idle_connections_are_closed_at_once);

async fn idle_connections_are_closed_at_once(http: Http) {
    let testbed = Testbed::builder().start().await;
    let mut used = testbed.anonymous(http).await;
    assert_eq!(used.get("/healthz").await.status, 200);
    let mut unused = testbed.anonymous(http).await;
    let started = Instant::now();
    let leaving = Leaving::start(testbed).await;
    for connection in [&mut used, &mut unused] {
        match http {
            Http::H1 => assert_eq!(connection.h1().read_to_end().await.expect("a proper end"), ""),
            Http::H2 => drop(connection.h2().closed().await),
        }
    }
    leaving.ended().await;
    assert!(started.elapsed() < LONG);
}

async fn a_followed_log_whose_pod_ends_is_whole(versions: Versions) {
    let member = versions.member.member().await;
    let mut logs = member.streams("/api/v1/namespaces/ns/pods/p/log");
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(versions.client).await;
    let target = proxied(CLUSTER, "/api/v1/namespaces/ns/pods/p/log?follow=true");
    let mut log = connection.open("GET", &target, &[]).await.unwrap();
    let (_, sender) = logs.next().await;
    assert!(sender.send("a line\n").await);
    assert_eq!(log.event().await, "a line\n");

    let started = Instant::now();
    let leaving = Leaving::start(testbed).await;
    assert!(sender.send("the last\n").await);
    drop(sender);
    assert_eq!(log.event().await, "the last\n");
    assert_eq!(log.line().await.expect("END_STREAM, or the last chunk"), None);
    leaving.ended().await;
    assert!(started.elapsed() < LONG, "it is over");
}
