//! The spelling in metrics, audit log and redirects.

use std::fs;

use system_tests::prelude::*;

use super::{ALICE, Fixture, hub};

across_dialects!(requests_are_counted_with_their_dialect, the_audit_log_names_it, locations_stay_in_it,);

/// Whether the exposition has exactly this line.
fn has(text: &str, line: &str) -> bool {
    text.lines().any(|found| found == line)
}

async fn requests_are_counted_with_their_dialect(dialect: Dialect) {
    let fixture = Fixture::set(dialect).await;
    fixture.member.on("/gone", |_| Reply::not_found());
    let mut connection = fixture.connect(Http::H2).await;
    let mut native = Dialect::Native.connect(&fixture.testbed, Http::H2).await.bearer(ALICE);
    for (rest, code) in [("/api/v1/pods", 200), ("/gone", 404)] {
        assert_eq!(connection.get(&fixture.path(rest)).await.status, code);
        assert_eq!(native.get(&proxied(CLUSTER, rest)).await.status, code);
    }
    let label = dialect.word().map(|word| format!(",dialect=\"{word}\"")).unwrap_or_default();
    // Those of the native spelling are the same as without any other.
    let (count, of_native) = if dialect == Dialect::Native { (2, 2) } else { (1, 1) };
    let line = |code, label: &str, count| {
        format!("cluster_gateway_requests_total{{cluster=\"{CLUSTER}\",verb=\"GET\",code=\"{code}\"{label}}} {count}")
    };
    let lines: Vec<_> =
        [200, 404].into_iter().flat_map(|code| [line(code, &label, count), line(code, "", of_native)]).collect();
    let metrics = |answer: &Answer| lines.iter().all(|line| has(&answer.text(), line));
    let mut scraper = fixture.testbed.anonymous(Http::H2).await.bearer(ALICE);
    let text = scraper.until(WAIT, "/metrics", metrics).await.text();
    let by_cluster = format!("ocm_proxy_proxied_requests_by_cluster_total{{cluster=\"{CLUSTER}\",code=\"404\"}} 2");
    assert!(has(&text, &by_cluster), "the Go cluster-gateway's metrics know no dialects: {text}");

    let target = format!("/apis/cluster.core.oam.dev/v1alpha1/clustergateways/{CLUSTER}/traffic");
    let traffic = scraper.get(&target).await.json();
    let counts: Vec<_> =
        traffic["status"]["requests"].as_array().expect("counts").iter().map(|one| &one["count"]).collect();
    assert_eq!(counts, [2, 2], "one entry for a method and code: {traffic}");
}

async fn the_audit_log_names_it(dialect: Dialect) {
    let (hub, member, directory) = (hub().await, Http::H2.member().await, tempfile::tempdir().expect("a directory"));
    member.on_any(|_| Reply::json(200, &json!({})));
    hub.put_secret(cluster(CLUSTER, &member));
    let log = directory.path().join("audit.log");
    let builder = Testbed::builder().hub(&hub).arg(&format!("--audit-log-path={}", log.display()));
    let testbed = dialect.on(builder).start().await;
    let target = dialect.path("/api/v1/namespaces/ns/pods/p");
    let mut connection = dialect.connect(&testbed, Http::H2).await.bearer(ALICE);
    assert_eq!(connection.get(&target).await.status, 200);
    testbed.stop().await;
    let text = fs::read_to_string(log).expect("the log");
    let event: Value = serde_json::from_str(text.trim_end()).expect("one event");
    assert_eq!((&event["requestURI"], &event["verb"]), (&json!(target), &json!("get")), "{event}");
    let object = json!({"resource": "pods", "namespace": "ns", "name": "p", "apiVersion": "v1"});
    assert_eq!((&event["objectRef"], &event["user"]["username"]), (&object, &json!("alice")), "{event}");
    let annotations = &event["annotations"];
    assert_eq!(annotations["cluster.core.oam.dev/cluster"], CLUSTER, "{event}");
    let named = annotations.get("cluster.core.oam.dev/dialect").and_then(Value::as_str);
    assert_eq!(named, dialect.word(), "{event}");
}

async fn locations_stay_in_it(dialect: Dialect) {
    let fixture = Fixture::set(dialect).await;
    let mut connection = fixture.connect(Http::H2).await;
    for (location, told) in [
        ("/api/v1/jobs/7?x=%2F".to_owned(), Some(fixture.path("/api/v1/jobs/7?x=%2F"))),
        (fixture.member.url() + "/jobs/7", Some(fixture.path("/jobs/7"))),
        ("https://elsewhere.example/".to_owned(), None),
        ("/../../x".to_owned(), None),
    ] {
        let shown = location.clone();
        fixture.member.on("/jobs", move |_| Reply::full(307, &[("location", &location)], ""));
        let answer = connection.get(&fixture.path("/jobs")).await;
        assert_eq!(answer.header("location"), told.as_deref(), "{shown}");
        assert_eq!(answer.status, if told.is_some() { 307 } else { 502 }, "{shown}");
    }
}
