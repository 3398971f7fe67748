//! A collector that is slow or away is no request's problem.

use super::*;

/// More spans than the queue and a batch in flight take together.
const REQUESTS: usize = 800;

async fn call(connection: &mut Connection) {
    assert_eq!(connection.get(&proxied(CLUSTER, PATH)).await.status, 200);
}

#[tokio::test]
async fn requests_go_on_and_lost_spans_are_counted() {
    let collector = Collector::start().await;
    let endpoint = endpoint(&collector);
    drop(collector);
    let member = FakeMember::start(MemberOptions::default()).await;
    member.on_any(|_| Reply::full(200, &[], "fine"));
    let builder = Testbed::builder().cluster(CLUSTER, cluster(CLUSTER, &member)).arg(&endpoint).arg(ALL);
    let testbed = builder.start().await;
    let mut connection = testbed.connect(Http::H2).await;
    call(&mut connection).await;
    let failed = "cluster_gateway_trace_spans_failed_total";
    becomes(WAIT, "lost spans in the metrics", async || metric(&mut connection, failed).await > 0).await;
    assert_eq!(metric(&mut connection, "cluster_gateway_trace_spans_exported_total").await, 0);
    call(&mut connection).await;
}

#[tokio::test]
async fn what_finds_no_room_is_dropped_and_counted_and_a_shutdown_does_not_wait() {
    let answers = Gate::new();
    let fixture = Fixture::telling(Collector::answering(answers.clone()).await, Http::H2, &[ALL]).await;
    let mut connection = fixture.testbed.aggregator_as_admin(&fixture.hub, Http::H2).await;
    for _ in 0..REQUESTS {
        call(&mut connection).await;
    }
    let dropped = metric(&mut connection, "cluster_gateway_trace_spans_dropped_total").await;
    assert!(dropped > 0, "of {REQUESTS} requests");
    drop(connection);
    let stopping = Instant::now();
    fixture.testbed.stop().await;
    assert!(stopping.elapsed() < WAIT / 2, "{:?}", stopping.elapsed());
}

#[tokio::test]
async fn what_the_collector_takes_is_counted() {
    let fixture = Fixture::with(Http::H2, &[ALL]).await;
    let mut connection = fixture.testbed.aggregator_as_admin(&fixture.hub, Http::H2).await;
    call(&mut connection).await;
    let exported = "cluster_gateway_trace_spans_exported_total";
    becomes(WAIT, "spans in the metrics", async || metric(&mut connection, exported).await >= 5).await;
    for lost in ["failed", "dropped"] {
        let series = format!("cluster_gateway_trace_spans_{lost}_total");
        assert_eq!(metric(&mut connection, &series).await, 0, "{lost}");
    }
}

#[tokio::test]
async fn a_shutdown_sends_what_is_queued() {
    let fixture = Fixture::with(Http::H2, &[ALL]).await;
    let mut connection = fixture.testbed.aggregator_as_admin(&fixture.hub, Http::H2).await;
    call(&mut connection).await;
    drop(connection);
    fixture.testbed.stop().await;
    let spans = fixture.collector.spans();
    assert_eq!(one(&spans, ROOT).get("http.response.status_code"), "200");
}
