//! Answers with and without a body, lengths, and trailers.

use kit::member::BodyEnd;
use system_tests::prelude::*;

across_versions!(answers_without_a_body_have_none, lengths_are_kept, a_body_of_unknown_length_stays_one);

async fn answers_without_a_body_have_none(versions: Versions) {
    let member = versions.member.member().await;
    member.on("/head", |_| Reply::full(200, &[("content-length", "12"), ("x-a", "1")], ""));
    member.on("/204", |_| Reply::full(204, &[("x-a", "1")], ""));
    member.on("/304", |_| Reply::full(304, &[("etag", "\"1\"")], ""));
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(versions.client).await;
    // Twice, since a byte too many or too few shows in the next bytes on the connection.
    for _ in 0..2 {
        let answer = connection.call("HEAD", &proxied(CLUSTER, "/head"), &[], b"").await;
        assert_eq!((answer.status, answer.header("content-length"), answer.body.len()), (200, Some("12"), 0));
        assert_eq!(answer.header("x-a"), Some("1"));
        let answer = connection.call("DELETE", &proxied(CLUSTER, "/204"), &[], b"").await;
        assert_eq!((answer.status, answer.header("x-a"), answer.body.len()), (204, Some("1"), 0));
        assert_eq!((answer.header("content-length"), answer.header("transfer-encoding")), (None, None));
        let answer = connection.get(&proxied(CLUSTER, "/304")).await;
        assert_eq!((answer.status, answer.header("etag"), answer.body.len()), (304, Some("\"1\""), 0));
    }
    assert_eq!(member.connections_accepted(), 1, "these leave a connection that can be used again");
}

async fn lengths_are_kept(versions: Versions) {
    let member = versions.member.member().await;
    member.on("/empty", |_| Reply::full(200, &[("content-length", "0")], ""));
    member.on("/full", |request| {
        let length = request.header("content-length").unwrap_or("none").to_owned();
        Reply::json(201, &json!({"length": length}))
    });
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(versions.client).await;
    let headers = [("content-length", "4")];
    let mut upload = connection.upload("POST", &proxied(CLUSTER, "/full"), &headers).await.expect("sent");
    upload.send("body").await.expect("taken");
    let answer = upload.answer().await.expect("an answer");
    assert_eq!((answer.status, answer.json()), (201, json!({"length": "4"})));
    assert_eq!(answer.header("content-length"), Some(answer.body.len().to_string().as_str()));
    let answer = connection.get(&proxied(CLUSTER, "/empty")).await;
    assert_eq!((answer.status, answer.header("content-length"), answer.body.len()), (200, Some("0"), 0));
}

async fn a_body_of_unknown_length_stays_one(versions: Versions) {
    let member = versions.member.member().await;
    let mut streams = member.streams("/x");
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(versions.client).await;
    let target = proxied(CLUSTER, "/x");
    let mut upload = connection.upload("POST", &target, &[]).await.expect("sent");
    upload.send("body").await.expect("taken");
    let answering = upload.answer();
    let member_side = async {
        let (request, stream) = streams.next().await;
        assert_eq!((request.header("content-length"), request.body_ended().await), (None, BodyEnd::Complete));
        assert!(stream.send("answer").await);
        request
    };
    let (answer, request) = tokio::join!(answering, member_side);
    let answer = answer.expect("a whole answer");
    assert_eq!((answer.header("content-length"), answer.text().as_str()), (None, "answer"));
    assert_eq!(request.body(), "body");
}

#[tokio::test]
async fn trailers_cross_both_ways_over_http2() {
    let member = Http::H2.member().await;
    let mut streams = member.streams("/x");
    let testbed = Testbed::with(&member).await;
    let connection = testbed.connect(Http::H2).await;
    let headers = [("authorization", "Bearer admin-token"), ("te", "trailers"), ("trailer", "x-sum")];
    let exchange = connection.h2().send(Method::POST, &proxied(CLUSTER, "/x"), &headers, false).await;
    let mut answer = exchange.expect("sent").response().await.expect("a head");
    let (request, stream) = streams.next().await;
    assert_eq!(request.header("te"), Some("trailers"));
    answer.upload.send("body", false).await.expect("taken");
    answer.upload.trailers(&[("x-sum", "4")]).expect("open");
    assert_eq!(request.body_ended().await, BodyEnd::Complete);
    assert_eq!(request.body(), "body");
    assert_eq!(request.trailers().expect("trailers")["x-sum"], "4");
    assert!(stream.send("answer").await);
    assert!(stream.trailers(&[("x-sum", "6"), ("grpc-status", "0")]).await);
    assert_eq!(answer.body.chunk().await.expect("open").expect("whole"), "answer");
    assert!(answer.body.chunk().await.is_none());
    let trailers = answer.body.trailers().await.expect("whole").expect("trailers");
    assert_eq!(trailers["x-sum"], "6");
    assert_eq!(trailers["grpc-status"], "0");
}
