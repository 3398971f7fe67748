use prometheus_client::encoding::text::encode;

use super::*;

/// Samples that contain the name of the cluster `c1`.
fn samples(registry: &Registry) -> Vec<String> {
    let mut text = String::new();
    encode(&mut text, registry).expect("into a String");
    text.lines().filter(|line| line.contains("cluster=\"c1\"")).map(str::to_owned).collect()
}

/// Counts in all series of requests and dials.
fn count(cluster: &ClusterMetrics) {
    for (verb, code) in [(HttpMethod::Get, 200), (HttpMethod::Post, 500)] {
        cluster.request_done(Dialect::Native, verb, code);
        let topic = cluster.topic("pods").expect("they are wanted");
        cluster.proxied_done(&topic, verb, code, Duration::from_secs(1));
    }
    cluster.observe_duration(Duration::from_secs(1));
    cluster.upgrade_moved(1);
    cluster.dial_failed("refused");
    cluster.credential_run("success");
    cluster.credential_expires(Some(SystemTime::now()));
    cluster.circuit().set(true);
    cluster.set_tunnelled(true);
}

#[test]
fn what_the_former_owner_of_a_name_counts_is_not_the_next_ones() {
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry).with_proxied(&mut registry);
    let former = metrics.for_cluster("c1".into(), Some("u-1"));
    count(&former);
    assert!(Arc::ptr_eq(&former, &metrics.for_cluster("c1".into(), Some("u-1"))));
    assert!(Arc::ptr_eq(&former, &metrics.for_cluster("c1".into(), None)), "whoever's it is");
    let (open, _stream) = (former.request(), former.stream());
    former.failed(Side::Hub);
    former.recent().add(api::traffic::RecentFailure::default());
    former.tunnel_open_ended(TunnelOpen::default(), Duration::ZERO);

    let next = metrics.for_cluster("c1".into(), Some("u-2"));
    count(&former);
    drop(open);
    let counted: Vec<_> = samples(&registry).into_iter().filter(|line| !line.ends_with(" 0")).collect();
    let none = |line: &String| line.contains("_sum{") && line.ends_with(" 0.0");
    assert!(counted.iter().all(none), "{counted:#?}");
    let told = next.traffic();
    assert!(told.requests.is_empty() && told.failures.is_empty() && told.recent_failures.is_empty(), "{told:?}");
    assert_eq!((told.requests_in_flight, told.streams_in_flight, told.tunnel_open), (0, 0, None));

    count(&next);
    assert!(samples(&registry).len() > 20);
    metrics.forget("c1");
    count(&next);
    assert_eq!(samples(&registry), Vec::<String>::new());
}

#[test]
fn a_cluster_behind_the_tunnel_is_told_as_long_as_it_is_there() {
    let mut registry = Registry::default();
    let cluster = Metrics::register(&mut registry).for_cluster("c1".into(), Some("u-1"));
    let told =
        |registry: &Registry| samples(registry).iter().any(|line| line.ends_with("_tunnelled{cluster=\"c1\"} 1"));
    cluster.set_tunnelled(true);
    assert!(told(&registry), "{:?}", samples(&registry));
    cluster.set_tunnelled(false);
    assert!(!samples(&registry).iter().any(|line| line.contains("_tunnelled")), "it moved out");
}
