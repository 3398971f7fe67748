use api::route::{self, Dialects, RawRequest, Served};
use http::Method;
use prometheus_client::registry::Registry;

use super::*;
use crate::metrics::Metrics;

/// A request for the cluster `c1`, which counts in `metrics`.
fn open(metrics: &Arc<ClusterMetrics>, is_admitted: bool) -> Open {
    Open {
        metrics: Arc::clone(metrics),
        in_flight: None,
        stream: None,
        topic: None,
        permits: [None, None],
        audit: None,
        access: None,
        span: None,
        verb: HttpMethod::Get,
        dialect: Dialect::Native,
        kind: None,
        code: 429,
        side: None,
        started: Instant::now(),
        is_stream: false,
        is_admitted,
        sending: None,
    }
}

fn line() -> AccessLine {
    let path = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c1/proxy/api/v1/pods";
    let served = Served::Gateway(Dialects::default());
    AccessLine::of(&route::parse(RawRequest { method: &Method::GET, path, query: None, upgrade: None, served }))
}

/// Anyone may fail before authorization, under any name, thousands of times a second.
#[test]
fn only_callers_that_may_ask_a_cluster_have_its_share_of_the_log_and_of_recent_failures() {
    let metrics = Metrics::register(&mut Registry::default());
    let (own, c1) = (metrics.of_none(), metrics.for_cluster("c1".into(), Some("u-1")));
    let named = line();
    assert!(named.cluster().is_some_and(|name| name.as_str() == "c1"));
    let has_share = |open: &Open| open.share(named.cluster(), &own).is_some();
    let failed = Failed { user: None, side: Side::Gateway, code: 429, text: "busy", suppressed: 0 };

    let stranger = open(&c1, false);
    stranger.failed(line(), &failed);
    assert!(!has_share(&stranger) && c1.recent().read().is_empty());
    assert!(!has_share(&open(&own, true)), "the name is not registered");
    let caller = open(&c1, true);
    caller.failed(line(), &failed);
    assert!(has_share(&caller) && c1.recent().read().len() == 1);
}
