//! Headers of an identity or a session are none in a trailer, and do not cross there either.

use http::Method;
use system_tests::{ADMIN, CLUSTER, Http, Testbed, proxied};

#[tokio::test]
async fn identity_does_not_cross_in_trailers() {
    let member = Http::H2.member().await;
    let mut streams = member.streams("/x");
    let testbed = Testbed::with(&member).await;
    let connection = testbed.client().h2().await.expect("the gateway accepts connections");
    let bearer = format!("Bearer {ADMIN}");
    let headers = [("authorization", bearer.as_str())];
    let mut exchange = connection.send(Method::POST, &proxied(CLUSTER, "/x"), &headers, false).await.expect("sent");
    exchange.send("body", false).await.expect("taken");
    let mut response = exchange.response().await.expect("a head");
    let (request, _stream) = streams.next().await;
    let trailers = [
        ("impersonate-user", "root"),
        ("authorization", "Bearer mine"),
        ("x-remote-user", "root"),
        ("x-remote-group", "system:masters"),
        ("cookie", "session=mine"),
        ("x-checksum", "1234"),
    ];
    response.upload.trailers(&trailers).expect("sent");
    request.body_ended().await;
    let crossed = request.trailers().unwrap_or_default();
    let names: Vec<_> = crossed.keys().map(http::HeaderName::as_str).collect();
    assert_eq!(names, ["x-checksum"]);
}

#[tokio::test]
async fn cookies_do_not_come_back_in_trailers() {
    let member = Http::H2.member().await;
    let mut streams = member.streams("/x");
    let testbed = Testbed::with(&member).await;
    let connection = testbed.connect(Http::H2).await;
    let answer = connection.open_beside("GET", &proxied(CLUSTER, "/x")).await.expect("a head");
    let (_, stream) = streams.next().await;
    assert!(stream.trailers(&[("set-cookie", "session=ours"), ("x-checksum", "1234")]).await);
    let answer = answer.whole().await.expect("a proper end");
    let names: Vec<_> = answer.trailers.keys().map(http::HeaderName::as_str).collect();
    assert_eq!(names, ["x-checksum"]);
}
