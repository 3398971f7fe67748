//! A client that leaves takes its request with it, at once, in every state of the request.

use h2::Reason;
use kit::member::{BodyEnd, Ending};
use system_tests::prelude::*;

across_versions!(
    leaving_before_the_head_cancels,
    leaving_an_idle_watch_cancels,
    leaving_during_an_upload_is_no_end_of_the_body
);
across_http!(resetting_one_stream_cancels_that_one_only);
across_dialects!(a_reset_cancels_its_own_stream, clients_that_come_and_go_leave_no_connection_behind);

async fn leaving_before_the_head_cancels(versions: Versions) {
    let member = versions.member.member().await;
    member.on("/x", |_| Reply::Never);
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(versions.client).await;
    let target = proxied(CLUSTER, "/x");
    let asked = {
        let waiting = connection.open("GET", &target, &[]);
        tokio::select! {
            answer = waiting => panic!("answered: {answer:?}"),
            asked = member.next_request() => asked,
        }
    };
    drop(connection);
    assert_eq!(member.cancelled().await.number, asked.number);
}

async fn leaving_an_idle_watch_cancels(versions: Versions) {
    let member = versions.member.member().await;
    let mut streams = member.streams("/x");
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(versions.client).await;
    let target = proxied(CLUSTER, "/x?watch=true");
    let mut watch = connection.open("GET", &target, &[]).await.expect("a head");
    let (request, stream) = streams.next().await;
    assert!(stream.send("event\n").await);
    assert_eq!(watch.event().await, "event\n");
    drop(watch);
    drop(connection);
    stream.gone().await;
    assert_eq!(request.ended().await.0, Ending::Cancelled);
}

async fn leaving_during_an_upload_is_no_end_of_the_body(versions: Versions) {
    let member = versions.member.member().await;
    member.on("/x", |_| Reply::json(201, &json!({})));
    let testbed = Testbed::with(&member).await;
    for length in [None, Some(("content-length", "8"))] {
        let mut connection = testbed.connect(versions.client).await;
        let target = proxied(CLUSTER, "/x");
        let mut upload = connection.upload("POST", &target, length.as_slice()).await.expect("sent");
        upload.send("half").await.expect("taken");
        let request = member.next_request().await;
        request.body_reached(4).await;
        drop(upload);
        drop(connection);
        assert_eq!(request.body_ended().await, BodyEnd::Broken, "half a body must not look like a whole one");
    }
}

async fn resetting_one_stream_cancels_that_one_only(member: Http) {
    reset_of_one(Dialect::Native, member).await;
}

async fn a_reset_cancels_its_own_stream(dialect: Dialect) {
    reset_of_one(dialect, Http::H2).await;
}

async fn reset_of_one(dialect: Dialect, member: Http) {
    let member = member.member().await;
    member.on("/never", |_| Reply::Never);
    let mut streams = member.streams("/watch");
    let testbed = dialect.testbed(&member).await;
    let connection = dialect.connect(&testbed, Http::H2).await;
    let bearer = format!("Bearer {ADMIN}");
    let headers = [("authorization", bearer.as_str())];
    let mut kept = connection.h2().get(&dialect.path("/watch"), &headers).await.expect("a head");
    let (_, kept_stream) = streams.next().await;
    member.next_request().await;

    let pending = connection.h2().send(Method::GET, &dialect.path("/never"), &headers, true).await.expect("sent");
    let asked = member.next_request().await;
    pending.reset(Reason::CANCEL);
    assert_eq!(member.cancelled().await.number, asked.number);

    let idle = connection.h2().get(&dialect.path("/watch"), &headers).await.expect("a head");
    let (_, idle_stream) = streams.next().await;
    drop(idle);
    idle_stream.gone().await;

    assert!(kept_stream.send("still here").await);
    assert_eq!(kept.body.chunk().await.expect("open").expect("whole"), "still here");
}

async fn clients_that_come_and_go_leave_no_connection_behind(dialect: Dialect) {
    let member = Http::H1.member().await;
    member.on("/x", |_| Reply::Never);
    let testbed = dialect.testbed(&member).await;
    for _ in 0..20 {
        let mut connection = dialect.connect(&testbed, Http::H1).await;
        connection
            .h1()
            .request("GET", &dialect.path("/x"), &[("authorization", &format!("Bearer {ADMIN}"))], b"")
            .await
            .expect("sent");
        member.next_request().await;
        drop(connection);
        member.cancelled().await;
    }
    eventually(WAIT, || member.connections_open() == 0).await;
}
