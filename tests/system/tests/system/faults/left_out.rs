//! Requests of which the member itself says that it did nothing with them: they may be sent again.

use std::time::Duration;

use kit::wait::within;
use system_tests::{CLUSTER, Http, Rig, proxied};

use super::frames::{FrameMember, OnRequest};

#[tokio::test]
async fn a_request_that_a_goaway_leaves_out_is_sent_again() {
    let member =
        FrameMember::start(|connection| if connection == 0 { OnRequest::LeaveOut } else { OnRequest::Answer }).await;
    let rig = Rig::with(&member).await;
    let mut connection = rig.connect(Http::H2).await;
    let target = proxied(CLUSTER, "/x");
    let asking = connection.get(&target);
    let answer = within(Duration::from_secs(1), "an answer on a new connection", asking).await;
    assert_eq!(answer.status, 200, "the member says that it did nothing (RFC 9113 section 6.8): {}", answer.text());
    assert_eq!(member.requests(), 2);
}

#[tokio::test]
async fn a_refused_stream_may_be_sent_again_and_says_so() {
    let member = FrameMember::start(|_| OnRequest::Refuse).await;
    let rig = Rig::with(&member).await;
    let answer = rig.get(&proxied(CLUSTER, "/x")).await;
    answer.status_message(503, "ServiceUnavailable");
    assert_eq!(answer.header("retry-after"), Some("1"), "the member did nothing (RFC 9113 section 8.7)");
}
