//! A hub that cannot keep up with reviews: callers that find its queue full may come again, as
//! nothing was asked for them.

use system_tests::prelude::*;

use super::Fixture;

/// More than may wait.
const CROWD: usize = 130;

#[tokio::test]
async fn a_full_queue_says_come_again() {
    let fixture = Fixture::with(&[]).await;
    fixture.hub.fail(Call::AccessReview, Fault::Delay(Duration::from_mins(1)));
    let strangers = fixture.testbed.anonymous(Http::H2).await;
    let mut waiting = Vec::new();
    for number in 0..CROWD {
        let target = proxied(&format!("cluster-{number}"), "/x");
        waiting.push(strangers.h2().send(Method::GET, &target, &[], true).await.expect("sent"));
    }
    let last = waiting.pop().expect("a crowd");
    let response = within(WAIT, "an answer", last.response()).await.expect("a head");
    assert_eq!(response.head.status, 429);
    assert_eq!(response.head.headers["retry-after"], "1");
    assert_eq!(fixture.member.request_count(), 0);
    let metrics = fixture.connect(Http::H2, "root").await.get("/metrics").await.text();
    let rejected = "cluster_gateway_reviews_rejected_total{kind=\"access\"} ";
    let count = metrics.lines().find_map(|line| line.strip_prefix(rejected)?.parse::<usize>().ok()).expect("a count");
    assert_eq!(count, CROWD - 100);
}
