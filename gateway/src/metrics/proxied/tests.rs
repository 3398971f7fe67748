use super::*;
use crate::metrics::labels::HttpMethod;

const BY_RESOURCE: &str = "ocm_proxy_proxied_resource_requests_by_resource";

/// Counts a request for `resource` that has ended.
fn count(cluster: &OfCluster, resource: &str, verb: HttpMethod, code: u16) {
    cluster.done(&cluster.topic(resource), verb, code, Duration::ZERO);
}

fn of(proxied: &Proxied, cluster: &str) -> OfCluster {
    proxied.of_cluster(&cluster.into(), &Arc::default())
}

const PODS: &str = "pods";

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

/// The sample lines of one family.
fn samples(registry: &Registry, family: &str) -> Vec<String> {
    text(registry).lines().filter(|line| line.starts_with(family)).map(ToOwned::to_owned).collect()
}

#[test]
fn the_exposition_is_the_one_dashboards_read() {
    let (registry, proxied) = registered();
    let cluster = of(&proxied, "c1");
    cluster.done(&cluster.topic(PODS), HttpMethod::Get, 200, Duration::from_millis(30));
    proxied.escalation_reviewed(true, Duration::from_millis(3));
    // The order of a family's series is not fixed.
    let text = text(&registry);
    let lines: Vec<_> = text.lines().filter(|line| !line.contains("success=\"false\"")).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn each_outcome_counts_for_itself() {
    let (registry, proxied) = registered();
    let (one, other) = (of(&proxied, "c1"), of(&proxied, "c2"));
    for (cluster, path, verb, code) in [
        (&one, PODS, HttpMethod::Get, 200),
        (&one, PODS, HttpMethod::Head, 200),
        (&one, PODS, HttpMethod::Post, 101),
        (&other, PODS, HttpMethod::Get, 503),
        (&other, "", HttpMethod::Get, 200),
    ] {
        count(cluster, path, verb, code);
    }
    let mut by_resource = samples(&registry, BY_RESOURCE);
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
        let cluster = of(&proxied, cluster);
        count(&cluster, PODS, HttpMethod::Get, 200);
        count(&cluster, "", HttpMethod::Get, 200);
    }
    let gone = of(&proxied, "c1");
    count(&gone, PODS, HttpMethod::Get, 200);
    count(&gone, "", HttpMethod::Get, 200);
    gone.life.hold().end();
    gone.remove();
    let text = text(&registry);
    assert!(!text.contains("c1"), "{text}");
    assert!(text.contains("by_cluster_total{cluster=\"c2\",code=\"200\"} 2"), "{text}");
}

#[test]
fn callers_make_no_labels_of_words_that_no_member_knows() {
    let (registry, proxied) = registered();
    let cluster = of(&proxied, "c1");
    for number in 0..5000 {
        count(&cluster, &format!("made-up-{number}"), HttpMethod::Get, if number % 2 == 0 { 404 } else { 429 });
    }
    let mut by_resource = samples(&registry, BY_RESOURCE);
    by_resource.sort();
    let line = |code| format!(r#"{BY_RESOURCE}_total{{resource="other",verb="get",code="{code}"}} 2500"#);
    assert_eq!(by_resource, [line(404), line(429)]);
    // So existing resources still get their own label, and with it their failures, for any cluster.
    count(&cluster, PODS, HttpMethod::Get, 200);
    count(&of(&proxied, "c2"), PODS, HttpMethod::Get, 403);
    let text = text(&registry);
    for code in [200, 403] {
        assert!(
            text.contains(&format!(r#"{BY_RESOURCE}_total{{resource="pods",verb="get",code="{code}"}} 1"#)),
            "{text}"
        );
    }
}

#[test]
fn a_member_that_knows_every_word_leaves_room_for_others() {
    let (registry, proxied) = registered();
    let cluster = of(&proxied, "c1");
    for number in 0..5000 {
        count(&cluster, &format!("made-up-{number}"), HttpMethod::Get, 200);
    }
    let by_resource = samples(&registry, BY_RESOURCE);
    assert_eq!(by_resource.len(), MOST_RESOURCES);
    let other = by_resource.iter().find(|line| line.contains("\"other\"")).expect("the rest");
    assert!(other.ends_with(&format!(" {}", 5001 - MOST_RESOURCES)), "{other}");
    assert_eq!(samples(&registry, "ocm_proxy_proxied_requests_by_cluster_total").len(), 1);
    count(&of(&proxied, "c2"), PODS, HttpMethod::Get, 200);
    assert!(text(&registry).contains("resource=\"pods\""));
}

#[test]
fn members_cannot_make_codes_without_end() {
    let (registry, proxied) = registered();
    let cluster = of(&proxied, "c1");
    count(&cluster, PODS, HttpMethod::Get, 200);
    for code in 201..=999 {
        count(&cluster, PODS, HttpMethod::Get, code);
    }
    let by_resource = samples(&registry, BY_RESOURCE);
    assert!(by_resource.len() <= MOST_OUTCOMES + 10, "{}", by_resource.len());
    let value = |line: &String| line.rsplit(' ').next().and_then(|count| count.parse::<u64>().ok()).expect("a count");
    assert_eq!(by_resource.iter().map(value).sum::<u64>(), 800);
}
