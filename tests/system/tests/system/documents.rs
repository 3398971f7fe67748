//! Discovery and OpenAPI as a hub and kubectl read them, and errors in the form their reader asked
//! for.

use system_tests::prelude::*;

across_http!(openapi_is_found_from_its_list_and_kept_by_its_hash, errors_are_protobuf_for_those_who_read_nothing_else);

const VERSION: &str = "/apis/cluster.core.oam.dev/v1alpha1";
const DOCUMENT: &str = "/openapi/v3/apis/cluster.core.oam.dev/v1alpha1";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A hub that denies everything yet, and a gateway of it.
async fn with_hub() -> (FakeHub, Testbed) {
    let hub = FakeHub::start().await;
    let testbed = Testbed::builder().hub(&hub).start().await;
    (hub, testbed)
}

async fn openapi_is_found_from_its_list_and_kept_by_its_hash(http: Http) {
    let testbed = Testbed::builder().start().await;
    let mut connection = testbed.connect(http).await;
    let list = connection.get("/openapi/v3").await;
    assert_eq!((list.status, list.header("content-type")), (200, Some("application/json")));
    let paths = list.json()["paths"].as_object().expect("paths").clone();
    assert_eq!(paths.keys().collect::<Vec<_>>(), ["apis/cluster.core.oam.dev/v1alpha1"], "nobody else's key");
    let url = paths["apis/cluster.core.oam.dev/v1alpha1"]["serverRelativeURL"].as_str().expect("a URL");
    assert!(url.starts_with(DOCUMENT), "{url}");

    let document = connection.get(url).await;
    assert_eq!((document.status, document.header("cache-control")), (200, Some("public, immutable")));
    assert_eq!(document.header("vary"), Some("Accept"));
    assert!(document.header("expires").is_some_and(|date| date.ends_with(" GMT")));
    let tag = document.header("etag").expect("a tag").to_owned();
    assert_eq!(url, format!("{DOCUMENT}?hash={}", tag.trim_matches('"')));

    let known = connection.call("GET", DOCUMENT, &[("if-none-match", &tag)], b"").await;
    assert_eq!((known.status, known.body.len()), (304, 0));
    let stale = connection.get(&format!("{DOCUMENT}?hash=0")).await;
    assert_eq!((stale.status, stale.header("expires")), (200, None), "a redirect would become a 502 at the hub");
    assert_eq!(stale.body, document.body);
    let head = connection.call("HEAD", url, &[], b"").await;
    let length = document.body.len().to_string();
    assert_eq!((head.status, head.body.len(), head.header("content-length")), (200, 0, Some(&*length)));
}

#[tokio::test]
async fn openapi_is_json_and_of_the_third_version_only() {
    let testbed = Testbed::builder().start().await;
    let mut connection = testbed.connect(Http::H2).await;
    let only = [("accept", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf")];
    let message = connection.call("GET", DOCUMENT, &only, b"").await.status_message(406, "NotAcceptable");
    assert!(message.contains("application/json"), "{message}");
    for path in ["/openapi/v2", "/openapi", "/openapi/v3/apis", "/openapi/v3/version"] {
        connection.get(path).await.status_message(404, "NotFound");
    }
    connection.call("POST", DOCUMENT, &[], b"{}").await.status_message(405, "MethodNotAllowed");
}

#[tokio::test]
async fn documents_are_for_those_who_may_read_their_paths() {
    let (hub, testbed) = with_hub().await;
    hub.add_token("reader", TokenUser::new("reader", &["readers"]));
    hub.on_access(|spec| match (spec["nonResourceAttributes"]["path"].as_str(), spec["user"].as_str()) {
        (Some("/openapi/v3" | DOCUMENT | "/apis" | VERSION), Some("reader")) => Decision::allow(),
        _ => Decision::no_opinion(""),
    });
    let paths = ["/openapi/v3", DOCUMENT, "/apis", VERSION];
    for path in paths {
        let mut connection = testbed.anonymous(Http::H2).await;
        let message = connection.get(path).await.status_message(403, "Forbidden");
        assert!(message.contains("system:anonymous"), "{message}");
    }
    let mut connection = testbed.anonymous(Http::H2).await.bearer("reader");
    for path in paths {
        assert_eq!(connection.get(path).await.status, 200, "{path}");
    }
}

/// The hub takes the whole group for unavailable unless this is answered at once.
#[tokio::test]
async fn the_availability_check_depends_on_nothing() {
    let (hub, testbed) = with_hub().await;
    hub.fail(Call::AccessReview, Fault::Status(500));
    let mut aggregator = testbed.aggregator(&hub, Http::H2).await;
    let checker = [("x-remote-user", "system:kube-aggregator"), ("x-remote-group", "system:masters")];
    let answer = aggregator.call("GET", VERSION, &checker, b"").await;
    assert_eq!((answer.status, &answer.json()["kind"]), (200, &Value::from("APIResourceList")));
    assert_eq!(hub.access_reviews(), [] as [Value; 0]);
}

#[tokio::test]
async fn a_poller_without_groups_counts_as_authenticated() {
    let (hub, testbed) = with_hub().await;
    hub.on_access(|spec| {
        let groups = spec["groups"].as_array().cloned().unwrap_or_default();
        if groups.contains(&"system:authenticated".into()) { Decision::allow() } else { Decision::no_opinion("") }
    });
    let mut aggregator = testbed.aggregator(&hub, Http::H2).await;
    let poller = [("x-remote-user", "system:aggregator")];
    for path in ["/openapi/v3", VERSION] {
        assert_eq!(aggregator.call("GET", path, &poller, b"").await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn discovery_speaks_the_form_that_its_reader_understands() {
    let testbed = Testbed::builder().start().await;
    let mut connection = testbed.connect(Http::H2).await;
    let v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let old = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
    for (accept, kind, content_type) in [
        (v2, "APIGroupDiscoveryList", v2),
        (old, "APIGroupList", "application/json"),
        ("*/*", "APIGroupList", "application/json"),
    ] {
        let answer = connection.call("GET", "/apis", &[("accept", accept)], b"").await;
        assert_eq!((&answer.json()["kind"], answer.header("content-type")), (&Value::from(kind), Some(content_type)));
        let tag = answer.header("etag").expect("a tag").to_owned();
        let again = connection.call("GET", "/apis", &[("accept", accept), ("if-none-match", &tag)], b"").await;
        assert_eq!(again.status, 304, "{accept}");
    }
    for path in ["/api", "/api/v1", "/apis/other.example"] {
        connection.get(path).await.status_message(404, "NotFound");
    }
}

async fn errors_are_protobuf_for_those_who_read_nothing_else(http: Http) {
    let testbed = Testbed::builder().start().await;
    let mut connection = testbed.connect(http).await;
    let target = proxied(CLUSTER, "/api/v1/pods");
    let answer = connection.call("GET", &target, &[("accept", PROTOBUF)], b"").await;
    assert_protobuf(&answer, 404, "no such cluster c1");
    for accept in
        ["application/vnd.kubernetes.protobuf,application/json", "application/vnd.kubernetes.protobuf,*/*", "*/*"]
    {
        let answer = connection.call("GET", &target, &[("accept", accept)], b"").await;
        assert!(answer.status_message(404, "NotFound").contains("no such cluster c1"), "{accept}");
    }
    let mut stranger = testbed.anonymous(http).await.bearer("unknown");
    assert_protobuf(&stranger.call("GET", &target, &[("accept", PROTOBUF)], b"").await, 401, "Unauthorized");
}

#[track_caller]
fn assert_protobuf(answer: &Answer, status: u16, text: &str) {
    assert_eq!((answer.status, answer.header("content-type")), (status, Some(PROTOBUF)));
    assert!(answer.body.starts_with(b"k8s\0"), "{:?}", answer.body);
    assert!(answer.text().contains(text), "{:?}", answer.body);
}
