//! A log that cannot be written costs events, never requests.

use kit::wait::{WAIT, within};
use system_tests::{CLUSTER, Http, Testbed, cluster, proxied};

use super::{Log, POD, member};

#[tokio::test]
async fn a_full_disk_stops_nobody() {
    let member = member().await;
    let testbed =
        Testbed::builder().cluster(CLUSTER, cluster(CLUSTER, &member)).arg("--audit-log-path=/dev/full").start().await;
    let mut connection = testbed.connect(Http::H2).await;
    for _ in 0..50 {
        assert_eq!(connection.get(&proxied(CLUSTER, POD)).await.status, 200);
    }
    let lost = "cluster_gateway_audit_events_write_errors_total 50\n";
    testbed.until(WAIT, "/metrics", |answer| answer.text().contains(lost)).await;
    within(WAIT, "the end", testbed.stop()).await;
}

#[tokio::test]
async fn events_are_counted() {
    let (log, member) = (Log::new(), member().await);
    let testbed = log.of(&member).start().await;
    assert_eq!(testbed.get(&proxied(CLUSTER, POD)).await.status, 200);
    let answer =
        testbed.until(WAIT, "/metrics", |answer| answer.text().contains("audit_events_written_total 1\n")).await.text();
    assert!(answer.contains("cluster_gateway_audit_events_dropped_total 0\n"), "{answer}");
}
