//! `Expect: 100-continue`: answered here, never forwarded, and no half-used connection afterwards
//! (CVE-2024-24791).

use kit::member::{BodyEnd, Reply};
use serde_json::json;
use system_tests::{ADMIN, CLUSTER, Http, Testbed, across_http, proxied};

across_http!(the_body_is_asked_for_and_arrives, a_member_that_refuses_leaves_nothing_half_used);

/// A head that announces `length` bytes and waits for the invitation to send them.
fn head(token: &str, path: &str, length: usize) -> String {
    let target = proxied(CLUSTER, path);
    format!(
        "POST {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nExpect: 100-continue\r\n\
         Content-Length: {length}\r\n\r\n"
    )
}

async fn the_body_is_asked_for_and_arrives(member: Http) {
    let member = member.member().await;
    member.on("/x", |_| Reply::json(201, &json!({})));
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.client().h1().await.expect("a connection");
    for _ in 0..2 {
        connection.send(head(ADMIN, "/x", 4)).await.expect("taken");
        assert_eq!(connection.head().await.expect("an interim answer").status, 100);
        connection.send("body").await.expect("taken");
        assert_eq!(connection.head().await.expect("an answer").status, 201);
        connection.body().await.expect("a whole one");
        let request = member.next_request().await;
        assert_eq!((request.header("expect"), request.body_ended().await), (None, BodyEnd::Complete));
        assert_eq!(request.body(), "body");
    }
    // As hubs do: the header and the body at once.
    connection.send(head(ADMIN, "/x", 4) + "body").await.expect("taken");
    let mut answer = connection.head().await.expect("an answer");
    if answer.status == 100 {
        answer = connection.head().await.expect("a final answer");
    }
    assert_eq!(answer.status, 201);
    assert_eq!(member.next_request().await.header("expect"), None);
}

#[tokio::test]
async fn who_may_not_send_is_not_asked_to() {
    let member = Http::H2.member().await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.client().h1().await.expect("a connection");
    connection.send(head("wrong", "/x", 4)).await.expect("taken");
    assert_eq!(connection.head().await.expect("a final answer").status, 401);
    connection.body().await.expect("a whole one");
    // The next bytes are a body that the gateway no longer waits for, not a request.
    connection
        .send(format!("GET {} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ADMIN}\r\n\r\n", proxied(CLUSTER, "/x")))
        .await
        .ok();
    connection.head().await.expect_err("the connection ends");
    assert_eq!(member.connections_accepted(), 0);
}

async fn a_member_that_refuses_leaves_nothing_half_used(member: Http) {
    let member = member.member().await;
    member.on("/no", |_| Reply::early(415, "no"));
    member.on("/yes", |request| Reply::json(200, &json!({"body": request.header("content-length")})));
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.client().h1().await.expect("a connection");
    connection.send(head(ADMIN, "/no", 4)).await.expect("taken");
    let mut answer = connection.head().await.expect("an answer");
    if answer.status == 100 {
        answer = connection.head().await.expect("a final answer");
    }
    assert_eq!(answer.status, 415);
    // Others, who share the way to the member, are not harmed by the body that never came.
    for _ in 0..3 {
        let answer = testbed.connect(Http::H2).await.call("POST", &proxied(CLUSTER, "/yes"), &[], b"body").await;
        assert_eq!(answer.status, 200);
    }
    let bodies: Vec<_> =
        member.requests().iter().filter(|request| request.path() == "/yes").map(kit::member::Recorded::body).collect();
    assert_eq!(bodies, ["body", "body", "body"]);
}
