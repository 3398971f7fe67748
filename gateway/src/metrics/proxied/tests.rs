use super::*;

const PODS: &str = "/api/v1/namespaces/ns/pods";

fn registered() -> (Registry, Proxied) {
    let mut registry = Registry::default();
    let proxied = Proxied::register(&mut registry);
    (registry, proxied)
}

fn text(registry: &Registry) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry).expect("into a String");
    text
}

/// The lines of samples of one family.
fn samples(registry: &Registry, family: &str) -> Vec<String> {
    text(registry).lines().filter(|line| line.starts_with(family)).map(ToOwned::to_owned).collect()
}

#[test]
fn the_exposition_is_the_one_dashboards_read() {
    let (registry, proxied) = registered();
    let cluster = proxied.of_cluster(&"c1".into());
    cluster.resource(PODS).done("get", 200, Duration::from_millis(30));
    proxied.escalation_reviewed(true, Duration::from_millis(3));
    // Series of one family come in any order.
    let text = text(&registry);
    let lines: Vec<_> = text.lines().filter(|line| !line.contains("success=\"false\"")).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn each_outcome_counts_for_itself() {
    let (registry, proxied) = registered();
    let (one, other) = (proxied.of_cluster(&"c1".into()), proxied.of_cluster(&"c2".into()));
    for (cluster, path, verb, code) in [
        (&one, PODS, "get", 200),
        (&one, "/api/v1/pods", "get", 200),
        (&one, PODS, "create", 101),
        (&other, PODS, "get", 503),
        (&other, "/version", "get", 200),
    ] {
        cluster.resource(path).done(verb, code, Duration::ZERO);
    }
    let mut by_resource = samples(&registry, "ocm_proxy_proxied_resource_requests_by_resource_total");
    by_resource.sort();
    let line = |labels: &str| format!("ocm_proxy_proxied_resource_requests_by_resource_total{{{labels}}}");
    assert_eq!(
        by_resource,
        [
            line(r#"resource="",verb="get",code="200""#) + " 1",
            line(r#"resource="pods",verb="create",code="101""#) + " 1",
            line(r#"resource="pods",verb="get",code="200""#) + " 2",
            line(r#"resource="pods",verb="get",code="503""#) + " 1",
        ]
    );
    let mut by_cluster = samples(&registry, "ocm_proxy_proxied_requests_by_cluster_total");
    by_cluster.sort();
    let line = |labels: &str| format!("ocm_proxy_proxied_requests_by_cluster_total{{{labels}}}");
    assert_eq!(
        by_cluster,
        [
            line(r#"cluster="c1",code="101""#) + " 1",
            line(r#"cluster="c1",code="200""#) + " 2",
            line(r#"cluster="c2",code="200""#) + " 1",
            line(r#"cluster="c2",code="503""#) + " 1",
        ]
    );
}

#[test]
fn a_cluster_that_goes_takes_its_series_along() {
    let (registry, proxied) = registered();
    for cluster in ["c1", "c2"] {
        let cluster = proxied.of_cluster(&cluster.into());
        cluster.resource(PODS).done("get", 200, Duration::ZERO);
        cluster.resource("/version").done("get", 200, Duration::ZERO);
    }
    let gone = proxied.of_cluster(&"c1".into());
    gone.resource(PODS).done("get", 200, Duration::ZERO);
    gone.resource("/version").done("get", 200, Duration::ZERO);
    gone.forget();
    let text = text(&registry);
    assert!(!text.contains("c1"), "{text}");
    assert!(text.contains("by_cluster_total{cluster=\"c2\",code=\"200\"} 2"), "{text}");
}

#[test]
fn callers_cannot_make_labels_without_end() {
    let (registry, proxied) = registered();
    let cluster = proxied.of_cluster(&"c1".into());
    for number in 0..5000 {
        cluster.resource(&format!("/api/v1/made-up-{number}")).done("get", 404, Duration::ZERO);
    }
    let by_resource = samples(&registry, "ocm_proxy_proxied_resource_requests_by_resource_total");
    assert!((MOST_RESOURCES..=MOST_RESOURCES + 1).contains(&by_resource.len()), "{}", by_resource.len());
    let other = by_resource.iter().find(|line| line.contains("\"other\"")).expect("the rest");
    assert!(other.ends_with(&format!(" {}", 5000 - MOST_RESOURCES)), "{other}");
    assert_eq!(samples(&registry, "ocm_proxy_proxied_requests_by_cluster_total").len(), 1);
}

#[test]
fn members_cannot_make_codes_without_end() {
    let (registry, proxied) = registered();
    let resource = proxied.of_cluster(&"c1".into()).resource(PODS);
    for code in 200..=999 {
        resource.done("get", code, Duration::ZERO);
    }
    let by_resource = samples(&registry, "ocm_proxy_proxied_resource_requests_by_resource_total");
    assert!(by_resource.len() <= MOST_OUTCOMES + 10, "{}", by_resource.len());
    let count = |line: &String| line.rsplit(' ').next().and_then(|count| count.parse::<u64>().ok()).expect("a count");
    assert_eq!(by_resource.iter().map(count).sum::<u64>(), 800);
}
