//! The reading on which reviews rest is a reading of the bytes that the member gets. That it is
//! Kubernetes' own reading is shown in `tests/hub` (`request_info`).

use api::access::{Attributes, Verb};
use api::route::MemberRequest;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use system_tests::prelude::*;

use super::Fixture;

const REQUESTS: usize = 400;

across_http!(what_is_reviewed_is_read_from_the_bytes_that_the_member_gets);

async fn what_is_reviewed_is_read_from_the_bytes_that_the_member_gets(http: Http) {
    let never = ["authorized", "unauthorized"].map(|what| format!("--authorization-webhook-cache-{what}-ttl=0s"));
    let fixture = Fixture::with(http, &["--authorize-proxy-subpath", &never[0], &never[1]]).await;
    fixture.hub.add_token("alices-token", TokenUser::new("alice", &[]));
    fixture.hub.allow_all();
    let mut connection = fixture.connect(http, None).await.bearer("alices-token");
    let mut reached = 0;
    for (method, target) in requests() {
        let (path, query) = target.split_once('?').map_or((&*target, None), |(path, query)| (path, Some(query)));
        let sent: Method = method.parse().expect("a method");
        let one_reading = MemberRequest::read(&sent, path, query, false).has_one_reading();
        // Words that some servers take for a method or a path: no member's API server does, and no
        // review.
        let headers = [("x-http-method-override", "DELETE"), ("x-original-url", "/api/v1/secrets")];
        let answer = connection.call(method, &proxied(CLUSTER, &target), &headers, b"").await;
        if !one_reading {
            answer.status_message(400, "BadRequest");
            let reviews = fixture.hub.access_reviews();
            assert_eq!(reviews.last().expect("a review")["resourceAttributes"]["resource"], "clustergateways");
            assert_eq!(fixture.member.request_count(), reached, "{method} {target}");
            continue;
        }
        assert_eq!(answer.status, 200, "{method} {target}: {}", answer.text());
        reached += 1;
        let got = fixture.member.next_request().await;
        let (path, query) =
            got.target.split_once('?').map_or((&*got.target, None), |(path, query)| (path, Some(query)));
        let asks = MemberRequest::read(&got.method, path, query, false);
        let reviews = fixture.hub.access_reviews();
        let [first, second] = reviews.last_chunk().expect("two reviews");
        assert_eq!(first["resourceAttributes"]["verb"], asks.reviewed_verb(Verb::Create).as_str(), "{method} {target}");
        assert_eq!(reviewed(second), as_json(&asks.attributes()), "{method} {target}");
    }
    assert!(reached >= REQUESTS / 2, "{reached} requests reached the member");
}

/// Methods, and paths with their query: the strange ones.
fn requests() -> Vec<(&'static str, String)> {
    let method = prop::sample::select(vec!["GET", "GET", "POST", "PUT", "PATCH", "DELETE"]);
    let segment = prop::sample::select(vec![
        "/api/v1",
        "/apis/apps/v1",
        "/namespaces/ns",
        "/pods",
        "/p",
        "/exec",
        "/log",
        "/watch",
        "/proxy",
        "/",
        "%2Fp",
        "/%70ods",
        "/x%5Cy",
        "/%25",
        "/a+b",
        "/x;y",
    ]);
    let query = prop::sample::select(vec![
        "",
        "?",
        "?watch=true",
        "?w%61tch=1",
        "?watch=0&watch=1",
        "?fieldSelector=metadata.name%3Dp",
        "?labelSelector=a+b",
        "?follow=true&impersonate=false",
        "?a=%zz&watch=1",
    ]);
    let path = prop::collection::vec(segment, 1..7).prop_map(|segments| segments.concat());
    let requests = (method, path.prop_filter("begins a path", |path| path.starts_with('/')), query);
    let mut runner = TestRunner::deterministic();
    let mut next = || requests.new_tree(&mut runner).expect("a request").current();
    (0..REQUESTS).map(|_| next()).map(|(method, path, query)| (method, format!("{path}{query}"))).collect()
}

/// The subject of a review, without its empty fields.
fn reviewed(spec: &Value) -> Value {
    let mut about =
        spec.get("resourceAttributes").or(spec.get("nonResourceAttributes")).expect("about something").clone();
    for selector in ["fieldSelector", "labelSelector"] {
        if let Some(raw) = about[selector]["rawSelector"].as_str().map(ToOwned::to_owned) {
            about[selector] = raw.into();
        }
    }
    without_empty(about)
}

fn as_json(attributes: &Attributes) -> Value {
    without_empty(match attributes {
        Attributes::NonResource { path, verb } => json!({"path": **path, "verb": verb}),
        Attributes::Resource(it) => json!({
            "verb": it.verb.as_str(), "group": it.group, "version": it.version, "resource": it.resource,
            "subresource": it.subresource, "namespace": it.namespace.as_deref(), "name": it.name.as_deref(),
            "fieldSelector": it.field_selector.as_deref(), "labelSelector": it.label_selector.as_deref(),
        }),
    })
}

fn without_empty(mut value: Value) -> Value {
    value.as_object_mut().expect("an object").retain(|_, value| !value.is_null() && *value != "");
    value
}
