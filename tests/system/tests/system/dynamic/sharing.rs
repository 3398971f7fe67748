//! However many requests and clusters want the same credential, it is issued once; and the operator
//! sees how often.

use system_tests::{CLUSTER, Http, Testbed, proxied};

use super::{PATH, Plugin, issue, member, seen};

#[tokio::test]
async fn a_hundred_first_requests_are_one_run() {
    let member = member(Http::H2.member_options()).await;
    let plugin = Plugin::new(&format!("while ! test -e $DIR/go; do sleep 0.02; done\n{}", issue("")));
    let testbed = Testbed::builder().cluster(CLUSTER, plugin.secret(CLUSTER, &member)).threads(2).start().await;
    let target = proxied(CLUSTER, PATH);
    let connections = [testbed.connect(Http::H2).await, testbed.connect(Http::H2).await];
    let asking = (0..100).map(|number| {
        let (connection, target) = (&connections[number % 2], &target);
        async move { connection.open_beside("GET", target).await.expect("an answer").status }
    });
    let (statuses, ()) = tokio::join!(futures_util::future::join_all(asking), async {
        plugin.running(1).await;
        std::fs::write(plugin.directory().join("go"), "").expect("the directory is writable");
    });
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    assert_eq!(plugin.runs(), 1);
    assert!(seen(&member).iter().all(|credential| credential == "Bearer token-1"));
}

#[tokio::test]
async fn clusters_with_the_same_program_share_its_credential() {
    let member = member(Http::H2.member_options()).await;
    let plugin = Plugin::tokens("");
    let builder = ["c1", "c2"]
        .into_iter()
        .fold(Testbed::builder(), |builder, name| builder.cluster(name, plugin.secret(name, &member)));
    let testbed = builder.start().await;
    for name in ["c1", "c2"] {
        assert_eq!(testbed.get(&proxied(name, PATH)).await.status, 200);
    }
    assert_eq!(seen(&member), ["Bearer token-1", "Bearer token-1"]);
    assert_eq!(plugin.runs(), 1);
}

#[tokio::test]
async fn runs_and_ends_are_counted_and_the_series_go_with_the_cluster() {
    let member = member(Http::H2.member_options()).await;
    let plugin = Plugin::tokens(",\"expirationTimestamp\":\"2100-01-01T00:00:00Z\"");
    let failing = Plugin::new("exit 1");
    let testbed = Testbed::builder()
        .cluster(CLUSTER, plugin.secret(CLUSTER, &member))
        .cluster("failing", failing.secret("failing", &member))
        .start()
        .await;
    assert_eq!(testbed.get(&proxied(CLUSTER, PATH)).await.status, 200);
    assert_eq!(testbed.get(&proxied("failing", PATH)).await.status, 503);
    let metrics = testbed.get("/metrics").await.text();
    for line in [
        "cluster_gateway_credential_refreshes_total{cluster=\"c1\",result=\"success\"} 1",
        "cluster_gateway_credential_refreshes_total{cluster=\"failing\",result=\"failed\"} 1",
        "cluster_gateway_credential_expiry_timestamp_seconds{cluster=\"c1\"} 4102444800",
    ] {
        assert!(metrics.contains(line), "{line} missing in:\n{metrics}");
    }
    for name in [CLUSTER, "failing"] {
        testbed.unregister(name);
    }
    let gone = |metrics: &str| !metrics.contains("cluster_gateway_credential_refreshes_total{");
    testbed.until(kit::wait::WAIT, "/metrics", |answer| gone(&answer.text())).await;
}
