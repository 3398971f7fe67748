//! The spans of a request, and their content.

use super::*;

across_http!(a_request_of_the_hub_is_told_as_a_part_of_its_trace);

async fn a_request_of_the_hub_is_told_as_a_part_of_its_trace(http: Http) {
    let fixture = Fixture::with(http, &[]).await;
    let headers = [("traceparent", &*SAMPLED.header()), ("tracestate", "hub=1"), ("audit-id", "audit-1")];
    assert_eq!(fixture.through_the_hub(http, &headers).await.status, 200);
    let spans = fixture.collector.trace(ROOT, SAMPLED.trace).await;

    let (root, member) = (one(&spans, ROOT), one(&spans, "member"));
    let parents = [
        (root, SAMPLED.span),
        (one(&spans, "authentication"), &*root.id),
        (one(&spans, "authorization"), &*root.id),
        (member, &*root.id),
        (one(&spans, "dial"), &*member.id),
    ];
    assert_eq!(spans.len(), parents.len(), "{spans:#?}");
    for (span, parent) in parents {
        assert_eq!((&*span.parent, &*span.state, &span.error), (parent, "hub=1", &None), "{span:#?}");
        assert_eq!(span.resource["service.name"], "cluster-gateway");
        let outer = spans.iter().find(|outer| outer.id == parent);
        assert!(outer.is_none_or(|outer| span.is_within(outer)), "{span:#?} in {outer:#?}");
    }
    assert!(one(&spans, "authentication").end <= one(&spans, "authorization").start, "in their order");
    assert!(one(&spans, "authorization").end <= member.start, "in their order");
    // The member's spans hang on the span of the request to it.
    let forwarded = format!("00-{}-{}-01", SAMPLED.trace, member.id);
    assert_eq!(fixture.forwarded().await, (Some(forwarded), Some("hub=1".to_owned())));
}

#[tokio::test]
async fn spans_say_what_was_asked_and_answered_and_no_secret() {
    let fixture = Fixture::with(Http::H2, &[]).await;
    fixture.member.on_any(|_| Reply::full(404, &[], ""));
    let mut connection = fixture.testbed.aggregator(&fixture.hub, Http::H2).await.with("x-remote-user", "jane");
    let headers = [("traceparent", &*SAMPLED.header()), ("audit-id", "audit-1"), ("cookie", "secret-cookie")];
    let target = proxied(CLUSTER, &format!("{PATH}?token=secret-query"));
    assert_eq!(connection.call("GET", &target, &headers, b"").await.status, 404);
    let spans = fixture.collector.trace(ROOT, SAMPLED.trace).await;

    let (root, member) = (one(&spans, ROOT), one(&spans, "member"));
    for (key, value) in [
        ("http.request.method", "GET"),
        ("http.response.status_code", "404"),
        ("url.path", &*proxied(CLUSTER, PATH)),
        ("k8s.cluster.name", CLUSTER),
        ("audit-id", "audit-1"),
        ("error.type", ""),
    ] {
        assert_eq!(root.get(key), value, "{key} of {root:#?}");
    }
    let address = fixture.member.address();
    for (key, value) in [
        ("http.request.method", "GET"),
        ("http.response.status_code", "404"),
        ("url.path", PATH),
        ("server.address", &*address.ip().to_string()),
        ("server.port", &*address.port().to_string()),
        ("error.type", "404"),
    ] {
        assert_eq!(member.get(key), value, "{key} of {member:#?}");
    }
    assert_eq!(one(&spans, "dial").get("cluster_gateway.dial.by"), "direct");
    assert_eq!((&root.error, &member.error), (&None, &Some(String::new())), "it is whose request it is that erred");
    let all = format!("{spans:?}");
    for secret in ["secret-query", "secret-cookie", MEMBER_TOKEN, "jane"] {
        assert!(!all.contains(secret), "{secret} in {spans:#?}");
    }
}

#[tokio::test]
async fn what_failed_says_so_and_why() {
    let fixture = Fixture::with(Http::H2, &[]).await;
    let away = kit::wait::free_port().await;
    let secret = cluster("away", &fixture.member).endpoint(&format!("https://127.0.0.1:{away}"));
    fixture.hub.put_secret(secret);
    let mut connection = fixture.testbed.aggregator(&fixture.hub, Http::H2).await.with("x-remote-user", "jane");
    let target = proxied("away", PATH);
    connection.until(WAIT, &target, |answer| answer.text().contains("connection refused")).await;
    let headers = [("traceparent", &*SAMPLED.header())];
    assert_eq!(connection.call("GET", &target, &headers, b"").await.status, 503);
    let spans = fixture.collector.trace(ROOT, SAMPLED.trace).await;

    let (root, member, dial) = (one(&spans, ROOT), one(&spans, "member"), one(&spans, "dial"));
    assert_eq!((root.get("error.type"), root.get("cluster_gateway.side")), ("503", "member"));
    assert_eq!((member.get("error.type"), dial.get("error.type")), ("member", "refused"));
    let why = format!("dial tcp 127.0.0.1:{away}: connect: connection refused");
    for span in [member, dial] {
        assert!(span.error.as_ref().is_some_and(|error| error.contains(&why)), "{span:#?}");
    }
}

#[tokio::test]
async fn a_refused_caller_is_not_named() {
    let fixture = Fixture::with(Http::H2, &[]).await;
    fixture.hub.on_access(|_| Decision::no_opinion(""));
    assert_eq!(fixture.through_the_hub(Http::H2, &[("traceparent", &SAMPLED.header())]).await.status, 403);
    let spans = fixture.collector.trace(ROOT, SAMPLED.trace).await;
    let (root, refused) = (one(&spans, ROOT), one(&spans, "authorization"));
    assert_eq!((refused.get("error.type"), root.get("cluster_gateway.side")), ("caller", "caller"));
    assert_eq!((&refused.error, &root.error), (&Some(String::new()), &None), "refusing is no failure of ours");
    assert_eq!(spans.len(), 3, "nothing came after it: {spans:#?}");
    assert!(!format!("{spans:?}").contains("jane"), "{spans:#?}");
}

#[tokio::test]
async fn a_connection_that_is_there_is_not_dialled() {
    let fixture = Fixture::with(Http::H2, &[]).await;
    fixture.through_the_hub(Http::H2, &[]).await;
    assert_eq!(fixture.through_the_hub(Http::H2, &[("traceparent", &SAMPLED.header())]).await.status, 200);
    let spans = fixture.collector.trace(ROOT, SAMPLED.trace).await;
    let mut names: Vec<_> = spans.iter().map(|span| &*span.name).collect();
    names.sort_unstable();
    assert_eq!(names, [ROOT, "authentication", "authorization", "member"]);
}

#[tokio::test]
async fn a_watch_is_told_when_it_ends() {
    let fixture = Fixture::with(Http::H2, &[]).await;
    let mut watches = fixture.member.streams("/api/v1/pods");
    let connection = fixture.testbed.aggregator(&fixture.hub, Http::H2).await;
    let mut connection = connection.with("x-remote-user", "jane").with("traceparent", &SAMPLED.header());
    let watch = connection.open("GET", &proxied(CLUSTER, "/api/v1/pods?watch=1"), &[]).await.expect("a watch");
    let (_, sender) = watches.next().await;
    // The ended part of it is exported before.
    let member = fixture.collector.span("asking the member", |span| span.name == "member").await;
    assert!(fixture.collector.spans().iter().all(|span| span.name != ROOT));
    drop(sender);
    drop(watch);
    let spans = fixture.collector.trace(ROOT, SAMPLED.trace).await;
    let root = one(&spans, ROOT);
    assert!(member.is_within(root) && root.end > member.end, "{root:#?}");
}

#[tokio::test]
async fn an_upgrade_is_told_with_the_connection_of_its_own() {
    let fixture = Fixture::with(Http::H1, &[]).await;
    fixture.member.on_any(|_| Reply::upgrade_echo("SPDY/3.1"));
    let mut connection = fixture.testbed.aggregator(&fixture.hub, Http::H1).await.with("x-remote-user", "jane");
    let traceparent = SAMPLED.header();
    let headers = [("connection", "upgrade"), ("upgrade", "SPDY/3.1"), ("traceparent", &*traceparent)];
    let target = proxied(CLUSTER, &format!("{PATH}/exec?command=secret-command"));
    drop(connection.open("POST", &target, &headers).await);
    drop(connection);
    let root = "POST clustergateways/proxy";
    let spans = fixture.collector.trace(root, SAMPLED.trace).await;
    let (root, member, dial) = (one(&spans, root), one(&spans, "member"), one(&spans, "dial"));
    assert_eq!((root.get("http.response.status_code"), member.get("http.response.status_code")), ("101", "101"));
    assert_eq!((&member.parent, &dial.parent), (&root.id, &member.id));
    assert!(!format!("{spans:?}").contains("secret-command"), "{spans:#?}");
}
