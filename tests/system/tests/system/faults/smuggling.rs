//! Bytes that a member sends beyond its answer belong to no request; interim answers are not
//! answers.

use kit::member::raw::{Act, RawMember};
use kit::pki::ALPN_H1;
use system_tests::{CLUSTER, Http, Testbed, across_http, proxied};

use super::assert_names_the_cluster;

across_http!(bytes_after_an_answer_answer_nothing, interim_answers_are_passed_over, a_head_without_end_is_refused,);

/// One answer of `bytes` bytes.
fn answer(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

async fn bytes_after_an_answer_answer_nothing(client: Http) {
    let member = RawMember::always(vec![
        Act::Tls(ALPN_H1),
        Act::ReadHead,
        Act::write(answer("good") + &answer("evil")),
        Act::ReadHead,
        Act::write(answer("good") + &answer("evil")),
        Act::ReadToEnd,
    ])
    .await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(client).await;
    for _ in 0..5 {
        let answer = connection.try_call("GET", &proxied(CLUSTER, "/x"), &[], b"").await;
        // An error is as good as the right answer: the member is broken, but no client is deceived.
        if let Ok(answer) = answer {
            assert!(!answer.text().contains("evil"), "somebody else's bytes were taken for the answer");
        }
    }
}

async fn interim_answers_are_passed_over(client: Http) {
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n";
    let member = RawMember::always(Act::answer(interim.to_owned() + &answer("good"), Act::ReadToEnd)).await;
    let testbed = Testbed::with(&member).await;
    let answer = testbed.connect(client).await.get(&proxied(CLUSTER, "/x")).await;
    assert_eq!((answer.status, answer.text().as_str(), answer.header("link")), (200, "good", None));
}

async fn a_head_without_end_is_refused(client: Http) {
    let endless = format!("HTTP/1.1 200 OK\r\nX-Endless: {}", "x".repeat(3 << 20));
    let member = RawMember::always(Act::answer(endless, Act::ReadToEnd)).await;
    let testbed = Testbed::with(&member).await;
    let answer = testbed.connect(client).await.get(&proxied(CLUSTER, "/x")).await;
    assert_names_the_cluster(&answer, 502, "InternalError");
}
