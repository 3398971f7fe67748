//! The decision to record a request: by the hub or the rate, and nothing else.

use super::*;

/// The trace ids at the collector, once it has got a later request that is certainly recorded.
async fn told(fixture: &Fixture) -> Vec<String> {
    let last = Parent { trace: "11111111111111111111111111111111", ..SAMPLED };
    fixture.through_the_hub(Http::H2, &[("traceparent", &last.header())]).await;
    fixture.collector.trace(ROOT, last.trace).await;
    let told = fixture.collector.spans().into_iter().map(|span| span.trace);
    told.filter(|trace| trace != last.trace).collect()
}

#[tokio::test]
async fn nothing_is_recorded_that_nobody_asked_to() {
    let fixture = Fixture::with(Http::H2, &[]).await;
    assert_eq!(fixture.through_the_hub(Http::H2, &[]).await.status, 200);
    assert_eq!(fixture.forwarded().await, (None, None));
    assert_eq!(told(&fixture).await, [] as [String; 0]);
}

#[tokio::test]
async fn the_hub_decides_against_the_rate() {
    let fixture = Fixture::with(Http::H2, &[ALL]).await;
    let headers = [("traceparent", &*UNSAMPLED.header()), ("tracestate", "hub=1")];
    assert_eq!(fixture.through_the_hub(Http::H2, &headers).await.status, 200);
    assert_eq!(
        fixture.forwarded().await,
        (Some(UNSAMPLED.header()), Some("hub=1".to_owned())),
        "it crosses as it came"
    );
    assert_eq!(told(&fixture).await, [] as [String; 0]);
}

#[tokio::test]
async fn the_rate_decides_where_nobody_did() {
    let fixture = Fixture::with(Http::H2, &[ALL]).await;
    assert_eq!(fixture.through_the_hub(Http::H2, &[]).await.status, 200);
    let root = fixture.collector.span("the request", |span| span.name == ROOT).await;
    assert_eq!((&*root.parent, root.links.len()), ("", 0));
    let member = fixture.collector.span("asking the member", |span| span.name == "member").await;
    assert_eq!(fixture.forwarded().await, (Some(format!("00-{}-{}-01", root.trace, member.id)), None));
}

across_http!(a_callers_word_decides_nothing, a_callers_trace_is_linked_where_the_rate_decides);

async fn a_callers_word_decides_nothing(http: Http) {
    let fixture = Fixture::with(http, &[]).await;
    fixture.hub.add_token("janes-token", TokenUser::new("jane", &[]));
    let mut connection = fixture.testbed.anonymous(http).await.bearer("janes-token");
    let headers = [("traceparent", &*SAMPLED.header()), ("tracestate", "forged=1")];
    assert_eq!(connection.call("GET", &proxied(CLUSTER, PATH), &headers, b"").await.status, 200);
    assert_eq!(fixture.forwarded().await, (None, None), "nor at the member");
    assert_eq!(told(&fixture).await, [] as [String; 0]);
}

async fn a_callers_trace_is_linked_where_the_rate_decides(http: Http) {
    let fixture = Fixture::with(http, &[ALL]).await;
    fixture.hub.add_token("janes-token", TokenUser::new("jane", &[]));
    let mut connection = fixture.testbed.anonymous(http).await.bearer("janes-token");
    let headers = [("traceparent", &*UNSAMPLED.header()), ("tracestate", "forged=1")];
    assert_eq!(connection.call("GET", &proxied(CLUSTER, PATH), &headers, b"").await.status, 200);
    let root = fixture.collector.span("the request", |span| span.name == ROOT).await;
    assert_eq!((&*root.parent, &*root.state, &*root.links), ("", "", &[UNSAMPLED.span.to_owned()][..]));
    assert_ne!(root.trace, UNSAMPLED.trace);
    let (parent, state) = fixture.forwarded().await;
    assert!(parent.is_some_and(|parent| parent.contains(&root.trace)) && state.is_none(), "ours, not the caller's");
}

/// A hub that traces nothing passes on its callers' trace headers.
#[tokio::test]
async fn a_hub_that_does_not_trace_need_not_be_believed() {
    let fixture = Fixture::with(Http::H2, &["--tracing-parent=none"]).await;
    assert_eq!(fixture.through_the_hub(Http::H2, &[("traceparent", &SAMPLED.header())]).await.status, 200);
    assert_eq!(fixture.forwarded().await, (None, None));
    fixture.testbed.stop().await;
    assert!(fixture.collector.spans().is_empty(), "{:#?}", fixture.collector.spans());
}

#[tokio::test]
async fn probes_and_scrapes_are_left_out() {
    let fixture = Fixture::with(Http::H2, &[ALL]).await;
    let mut aggregator = fixture.testbed.aggregator_as_admin(&fixture.hub, Http::H2).await;
    for path in ["/readyz", "/livez", "/healthz", "/metrics"] {
        aggregator.get(path).await;
    }
    assert_eq!(aggregator.get("/version").await.status, 200);
    fixture.testbed.stop().await;
    let paths = fixture.collector.spans().into_iter().filter(|span| span.name == "GET");
    assert_eq!(paths.map(|span| span.get("url.path").to_owned()).collect::<Vec<_>>(), ["/version"]);
}

#[tokio::test]
async fn without_a_collector_everything_crosses_and_nothing_is_counted() {
    let (hub, member) = (FakeHub::start().await, FakeMember::start(MemberOptions::default()).await);
    hub.allow_all();
    member.on_any(|_| Reply::full(200, &[], "fine"));
    hub.put_secret(cluster(CLUSTER, &member));
    let testbed = Testbed::builder().hub(&hub).start().await;
    let mut connection = testbed.aggregator_as_admin(&hub, Http::H2).await;
    let headers = [("traceparent", &*SAMPLED.header()), ("tracestate", "a=1")];
    assert_eq!(connection.call("GET", &proxied(CLUSTER, PATH), &headers, b"").await.status, 200);
    let request = member.next_request().await;
    assert_eq!((request.header("traceparent"), request.header("tracestate")), (Some(&*SAMPLED.header()), Some("a=1")));
    let metrics = connection.get("/metrics").await.text();
    assert!(!metrics.contains("trace_spans"), "{metrics}");
}
