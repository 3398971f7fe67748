//! A request that does not end by itself is cut off when the time for draining is over, and never
//! before. Nothing that is cut off looks whole.

use kit::client::H1Connection;
use kit::member::Ending;
use system_tests::prelude::*;

use super::Leaving;

/// Long enough to be noticed.
const DRAIN: Duration = Duration::from_secs(1);
/// Long compared to what happens meanwhile.
const LONG_DRAIN: Duration = Duration::from_secs(5);

async fn testbed(secret: ClusterSecret, drain: Duration) -> Testbed {
    Testbed::builder().cluster(CLUSTER, secret).arg(&format!("--drain-timeout={}s", drain.as_secs())).start().await
}

async fn exec(testbed: &Testbed) -> H1Connection {
    let mut connection = testbed.client().h1().await.unwrap();
    let authorization = format!("Bearer {ADMIN}");
    let target = proxied(CLUSTER, "/api/v1/namespaces/ns/pods/p/exec?command=sh");
    let head = connection.upgrade("GET", &target, "websocket", &[("Authorization", &authorization)]).await.unwrap();
    assert_eq!(head.status, 101);
    connection
}

#[tokio::test]
async fn upgrades_work_until_the_deadline_and_are_closed_then() {
    let member = RawMember::always(Act::upgrade("websocket", b"")).await;
    let testbed = testbed(cluster(CLUSTER, &member), LONG_DRAIN).await;
    let mut connection = exec(&testbed).await;
    let started = Instant::now();
    let leaving = Leaving::start(testbed).await;
    connection.send("still here").await.unwrap();
    assert_eq!(connection.read_exact(10).await.unwrap(), "still here");

    let end = connection.read().await;
    assert!(end.as_ref().is_ok_and(bytes::Bytes::is_empty) || end.is_err(), "{end:?}");
    assert!(started.elapsed() >= LONG_DRAIN, "closed after {:?}", started.elapsed());
    member.until(0, |connection| connection.caller_closed).await;
    leaving.ended().await;
    assert!(started.elapsed() < LONG_DRAIN + WAIT);
}

#[tokio::test]
async fn an_upgrade_that_ends_by_itself_is_not_waited_for() {
    let member = RawMember::always(Act::upgrade("websocket", b"")).await;
    let testbed = Testbed::with(&member).await; // with half a minute for draining
    let connection = exec(&testbed).await;
    let leaving = Leaving::start(testbed).await;
    drop(connection);
    leaving.ended().await;
}

across_versions!(an_answer_that_never_comes_is_given_up_without_a_proper_end);

async fn an_answer_that_never_comes_is_given_up_without_a_proper_end(versions: Versions) {
    let member = versions.member.member().await;
    member.on_any(|_| Reply::Never);
    let testbed = testbed(cluster(CLUSTER, &member), DRAIN).await;
    let mut connection = testbed.connect(versions.client).await;
    let target = proxied(CLUSTER, "/api/v1/pods");
    let asking = tokio::spawn(async move { connection.try_call("GET", &target, &[], b"").await });
    let request = member.next_request().await;
    let started = Instant::now();
    let leaving = Leaving::start(testbed).await;
    let outcome = asking.await.unwrap();
    assert!(outcome.is_err(), "{outcome:?}");
    assert!(started.elapsed() >= DRAIN, "given up after {:?}", started.elapsed());
    assert_eq!(request.ended().await.0, Ending::Cancelled);
    leaving.ended().await;
}

across_versions!(
    half_an_answer_is_never_passed_off_as_a_whole_one,
    a_followed_log_goes_on_until_the_deadline_and_never_seems_to_be_over
);

/// No watches: each has an end of its own, which the client waits for, whatever its query says.
const WITH_AN_END: [&str; 4] = [
    "/api/v1/pods?limit=500",
    "/api/v1/namespaces/ns/services/s/proxy/download?watch=true&follow=true",
    "/api/v1/namespaces/ns/configmaps/large?watch=1",
    "/openapi/v2?follow",
];

async fn half_an_answer_is_never_passed_off_as_a_whole_one(versions: Versions) {
    let member = versions.member.member().await;
    let testbed = testbed(cluster(CLUSTER, &member), DRAIN).await;
    let mut connections = Vec::new();
    for _ in WITH_AN_END {
        connections.push(testbed.connect(versions.client).await);
    }
    let mut open = Vec::new();
    for (target, connection) in WITH_AN_END.into_iter().zip(&mut connections) {
        let mut answers = member.streams(target.split('?').next().unwrap_or_default());
        let mut answer = connection.open("GET", &proxied(CLUSTER, target), &[]).await.unwrap();
        let (_, sender) = answers.next().await;
        // A whole line, as a log's would be.
        assert!(sender.send("{\"items\": [\n").await);
        assert_eq!(answer.chunk().await.unwrap().as_deref(), Some(&b"{\"items\": [\n"[..]));
        open.push((target, answer, sender));
    }
    let leaving = Leaving::start(testbed).await;
    for (target, mut answer, _sender) in open {
        assert!(answer.chunk().await.is_err(), "{target} is not complete");
    }
    leaving.ended().await;
}

async fn a_followed_log_goes_on_until_the_deadline_and_never_seems_to_be_over(versions: Versions) {
    let member = versions.member.member().await;
    let mut logs = member.streams("/api/v1/namespaces/ns/pods/p/log");
    let testbed = testbed(cluster(CLUSTER, &member), LONG_DRAIN).await;
    let mut connection = testbed.connect(versions.client).await;
    let target = proxied(CLUSTER, "/api/v1/namespaces/ns/pods/p/log?container=c&follow=true");
    let mut log = connection.open("GET", &target, &[]).await.unwrap();
    let (request, sender) = logs.next().await;
    assert!(sender.send("a line\n").await);
    assert_eq!(log.event().await, "a line\n");

    let started = Instant::now();
    let leaving = Leaving::start(testbed).await;
    assert!(sender.send("another\n").await);
    assert_eq!(log.event().await, "another\n");
    let end = log.line().await;
    assert!(end.is_err(), "kubectl would say that the container has ended: {end:?}");
    assert!(started.elapsed() >= LONG_DRAIN, "cut off after {:?}", started.elapsed());
    assert_eq!(request.ended().await.0, Ending::Cancelled);
    leaving.ended().await;
}
