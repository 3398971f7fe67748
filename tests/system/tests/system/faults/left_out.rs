//! Requests that the member itself says it did not process: they may be sent again.

use kit::wait::within;
use system_tests::{CLUSTER, Http, Testbed, proxied};

use super::frames::{FaultyMember, OnRequest};
use super::{AT_ONCE, assert_names_the_cluster};

#[tokio::test]
async fn a_request_that_a_goaway_leaves_out_is_sent_again() {
    let member =
        FaultyMember::start(|connection| if connection == 0 { OnRequest::LeaveOut } else { OnRequest::Answer }).await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(Http::H2).await;
    let target = proxied(CLUSTER, "/x");
    let asking = connection.get(&target);
    let answer = within(AT_ONCE, "an answer on a new connection", asking).await;
    assert_eq!(answer.status, 200, "the member says that it did nothing (RFC 9113 section 6.8): {}", answer.text());
    assert_eq!(member.requests(), 2);
}

#[tokio::test]
async fn a_left_out_request_with_a_body_may_be_sent_again_and_says_so() {
    let member = FaultyMember::start(|_| OnRequest::LeaveOut).await;
    let testbed = Testbed::with(&member).await;
    let answer = testbed.connect(Http::H2).await.call("POST", &proxied(CLUSTER, "/x"), &[], b"{}").await;
    answer.status_message(503, "ServiceUnavailable");
    assert_eq!((answer.header("retry-after"), member.requests()), (Some("1"), 1), "the body is not kept");
}

#[tokio::test]
async fn a_member_that_leaves_everything_out_is_not_asked_for_ever() {
    let member = FaultyMember::start(|_| OnRequest::LeaveOut).await;
    let testbed = Testbed::with(&member).await;
    let answer = testbed.get(&proxied(CLUSTER, "/x")).await;
    let message = answer.status_message(503, "ServiceUnavailable");
    assert!(!message.contains("may have been processed"), "it says that it did not: {message}");
    assert!((2..10).contains(&member.requests()), "asked {} times", member.requests());
}

#[tokio::test]
async fn a_request_that_a_goaway_includes_is_never_sent_again() {
    const NO_ERROR: u32 = 0;
    const INTERNAL_ERROR: u32 = 2;
    for code in [NO_ERROR, INTERNAL_ERROR] {
        let member = FaultyMember::start(move |_| OnRequest::GiveUp(code)).await;
        let testbed = Testbed::with(&member).await;
        let answer = testbed.get(&proxied(CLUSTER, "/x")).await;
        let message = assert_names_the_cluster(&answer, 502, "InternalError");
        assert!(message.contains("may have been processed"), "{message}");
        assert_eq!(member.requests(), 1);
    }
}

#[tokio::test]
async fn a_refused_stream_may_be_sent_again_and_says_so() {
    let member = FaultyMember::start(|_| OnRequest::Refuse).await;
    let testbed = Testbed::with(&member).await;
    let answer = testbed.get(&proxied(CLUSTER, "/x")).await;
    answer.status_message(503, "ServiceUnavailable");
    assert_eq!(answer.header("retry-after"), Some("1"), "the member did nothing (RFC 9113 section 8.7)");
}
