//! Members that break off: a request on which one may have acted is never repeated, and no client
//! is invited to repeat it.

use kit::pki::ALPN_H1;
use system_tests::prelude::*;

use super::assert_names_the_cluster;
use super::frames::{FaultyMember, OnRequest};

across_http!(
    an_answer_that_never_comes_is_502_and_asked_for_once,
    a_list_cut_short_is_an_error,
    a_stream_shorter_than_it_said_is_an_error
);
across_versions!(a_connection_lost_before_the_answer_is_502);

/// Ways to take a request and give no answer.
fn silences() -> Vec<(&'static str, Vec<Act>)> {
    let read = || vec![Act::Tls(ALPN_H1), Act::ReadHead];
    let after = |bytes: &'static str, last: Act| [read(), vec![Act::write(bytes), last]].concat();
    vec![
        ("reset", Act::reset_after_head()),
        ("closed", Act::close_after_head()),
        ("cut", [read(), vec![Act::Abandon]].concat()),
        ("half a head", after("HTTP/1.1 200 OK\r\nContent-Le", Act::Close)),
        ("no HTTP", after("SSH-2.0-OpenSSH_9.9\r\n\r\n", Act::Close)),
        ("two lengths", after("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", Act::Close)),
    ]
}

async fn an_answer_that_never_comes_is_502_and_asked_for_once(client: Http) {
    for (silence, script) in silences() {
        for (method, body) in [("GET", &b""[..]), ("POST", b"{}"), ("DELETE", b"")] {
            let member = RawMember::always(script.clone()).await;
            let testbed = Testbed::with(&member).await;
            let answer = testbed.connect(client).await.call(method, &proxied(CLUSTER, "/x"), &[], body).await;
            let message = assert_names_the_cluster(&answer, 502, "InternalError");
            assert!(message.contains("may have been processed"), "{silence}: {message}");
            assert!(!message.contains("dial tcp"), "{silence}: a reachable member is not unreachable: {message}");
            let heads: usize = member.connections().iter().map(|connection| connection.heads.len()).sum();
            assert_eq!(heads, 1, "{silence}: {method} was sent again");
        }
    }
}

async fn a_connection_lost_before_the_answer_is_502(versions: Versions) {
    let member = versions.member.member().await;
    member.on("/x", |_| Reply::Never);
    let testbed = Testbed::with(&member).await;
    for method in ["GET", "POST"] {
        let mut connection = testbed.connect(versions.client).await;
        let asked = member.request_count();
        let target = proxied(CLUSTER, "/x");
        let asking = connection.call(method, &target, &[], b"");
        let losing = async {
            member.next_request().await;
            member.close_connections();
        };
        let (answer, ()) = tokio::join!(asking, losing);
        assert_names_the_cluster(&answer, 502, "InternalError");
        assert_eq!(member.request_count(), asked + 1, "{method} was sent again");
    }
}

async fn a_list_cut_short_is_an_error(client: Http) {
    let list = r#"{"kind":"PodList","items":[{"metadata":{"name":"a"}},"#;
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", 2 * list.len());
    let member = RawMember::always(Act::answer(head + list, Act::Close)).await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(client).await;
    let target = proxied(CLUSTER, "/api/v1/pods");
    let mut answer = connection.open("GET", &target, &[]).await.expect("the head was whole");
    assert_eq!(answer.status, 200);
    let mut passed_on = Vec::new();
    while let Ok(chunk) = answer.chunk().await {
        passed_on.extend_from_slice(&chunk.expect("no clean end: what is missing is noticed"));
    }
    assert_eq!(passed_on, list.as_bytes());
    assert_eq!(member.connection_count(), 1);
}

async fn a_stream_shorter_than_it_said_is_an_error(client: Http) {
    let member = FaultyMember::start(|_| OnRequest::Shorten).await;
    let testbed = Testbed::with(&member).await;
    let answer = testbed.connect(client).await.try_call("GET", &proxied(CLUSTER, "/x"), &[], b"").await;
    answer.expect_err("five of ten bytes are not an answer");
}
