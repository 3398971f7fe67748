//! Tables for the rules, and properties for all other input. The general request-info rules and the
//! short cut for proxied paths must agree on every input.

use http::Method;
use proptest::prelude::*;

use super::*;
use crate::{GROUP, VERSION};

/// A request that does not ask to switch protocols.
fn parse<'a>(method: &'a Method, path: &'a str, query: Option<&'a str>) -> Parsed<'a> {
    super::parse(RawRequest::new(method, path, query))
}

const G: &str = "/apis/cluster.core.oam.dev/v1alpha1";

fn get(path: &str) -> Route<'_> {
    parse(&Method::GET, path, None).route
}

fn resource(method: &Method, path: &str, query: Option<&str>) -> ResourceAttributes {
    match parse(method, path, query).attributes {
        Attributes::Resource(attributes) => attributes,
        other @ Attributes::NonResource { .. } => panic!("{method} {path} is a resource request, got {other:?}"),
    }
}

fn remainder(path: &str) -> Option<(String, String)> {
    match get(path) {
        Route::Proxy(proxy) => Some((proxy.cluster.to_string(), path[proxy.prefix.len()..].to_owned())),
        _ => None,
    }
}

#[test]
fn collection_path_is_made_of_the_group_and_version() {
    assert_eq!(COLLECTION, format!("/apis/{GROUP}/{VERSION}/{RESOURCE}"));
    assert_eq!(VIRTUAL, format!("/apis/{GROUP}/{VERSION}/{VIRTUAL_CLUSTERS}"));
}

#[test]
fn proxied_paths_keep_their_bytes() {
    for tail in ["", "/", "//", "/api/v1/pods", "/a%2Fb/", "//api//v1", "/a%20b;x=1", "/%252e%252e/x", "/...", "/é"] {
        for name in ["c1", "a.b-c.d", "0"] {
            let path = format!("{COLLECTION}/{name}/proxy{tail}");
            assert_eq!(remainder(&path), Some((name.to_owned(), tail.to_owned())), "{path}");
        }
    }
}

#[test]
fn dot_segments_are_refused_but_reviewed() {
    for tail in ["/..", "/.", "/x/../y", "/%2e%2e/x", "/..%2fx", "/\\..", "/%5c..", "/.%2E/"] {
        let path = format!("{COLLECTION}/c1/proxy{tail}");
        assert_eq!(get(&path), Route::BadRequest(BadPath::DotSegment), "{path}");
        assert_eq!(resource(&Method::GET, &path, None).subresource, "proxy");
    }
}

#[test]
fn a_query_that_some_members_read_and_others_do_not_is_refused_but_reviewed() {
    let path = format!("{COLLECTION}/c1/proxy/api/v1/secrets");
    for (count, expected) in [(9_999, false), (10_000, true)] {
        let query = format!("fieldSelector=metadata.name%3Dmine{}", "&".repeat(count));
        let parsed = parse(&Method::GET, &path, Some(&query));
        assert_eq!(parsed.route == Route::BadRequest(BadPath::Parameters), expected, "{count}");
        assert_eq!(resource(&Method::GET, &path, Some(&query)).subresource, "proxy");
    }
}

#[test]
fn only_the_canonical_spelling_is_served() {
    for path in [
        format!("{G}/namespaces/ns/clustergateways/c1/proxy/x"),
        format!("{G}/namespaces/ns/clustergateways"),
        format!("{G}/watch/clustergateways/c1/proxy"),
        format!("{G}/watch/clustergateways"),
        format!("{G}/proxy/clustergateways/c1"),
        format!("{G}//clustergateways/c1/proxy"),
        format!("{G}/clustergateways//c1/proxy"),
        format!("{G}/clustergateways/c1//proxy"),
        format!("/{G}/clustergateways/c1/proxy"),
        format!("{G}/clustergateways/c%31/proxy"),
        format!("{G}/clustergateways/c1/prox%79"),
        format!("{G}/cluster%67ateways/c1/proxy"),
        "/apis/cluster.core.oam.dev/v1alph%61/clustergateways/c1/proxy".to_owned(),
        "/%61pis/cluster.core.oam.dev/v1alpha1/clustergateways/c1/proxy".to_owned(),
        "/apis/cluster.core.oam.dev/v1beta1/clustergateways/c1/proxy".to_owned(),
        "/APIS/cluster.core.oam.dev/v1alpha1/clustergateways/c1/proxy".to_owned(),
        format!("{G}/clustergateways/C1/proxy"),
        format!("{G}/clustergateways/c_1/proxy"),
        format!("{G}/clustergateways/../proxy"),
        format!("{G}/clustergateways/-/proxy"),
        format!("{G}/clustergateways/{}/proxy", "a".repeat(254)),
        format!("{G}/clustergateways/c1/proxyfoo"),
        format!("{G}/clustergateways/c1/proxy%2Fapi"),
        format!("{G}/clustergateways/c1/healthz"),
        format!("{G}/clustergateways/c1/health/x"),
        format!("{G}/clustergateways/c1/health//"),
        format!("{G}/clustergateways/C1/health"),
        format!("{G}/clustergateways/c1/status"),
        format!("{G}/namespaces/ns/clustergateways/c1/health"),
        format!("{G}/clustergateways//health"),
        format!("{G}/clustergateways/c1//"),
        format!("{G}/clustergateways//"),
        format!("{G}/clustergatewaysx"),
        format!("{G}//"),
        format!("{G}/virtualclusters/c1/proxy"),
        format!("{G}/virtualclusters/c1/health"),
        format!("{G}/virtualclusters/C1"),
        format!("{G}/virtualclustersx"),
        format!("{G}/watch/virtualclusters"),
        "/openapi/v2".to_owned(),
        "/openapi".to_owned(),
        "/openapi/v3/version".to_owned(),
        "/openapi/v3/apis/cluster.core.oam.dev".to_owned(),
        "/openapi/v3/apis/cluster.core.oam.dev/v1alpha1/x".to_owned(),
        "/api".to_owned(),
        "/api/v1/pods".to_owned(),
        "/".to_owned(),
        String::new(),
        "*".to_owned(),
        "/healthz/".to_owned(),
        "/healthzz".to_owned(),
    ] {
        for method in [Method::GET, Method::POST, Method::OPTIONS] {
            assert_eq!(parse(&method, &path, None).route, Route::NotFound, "{method} {path}");
        }
    }
}

#[test]
fn proxy_verbs() {
    let path = format!("{COLLECTION}/c1/proxy/x");
    for (method, verb) in [
        ("GET", "get"),
        ("HEAD", "get"),
        ("POST", "create"),
        ("PUT", "update"),
        ("PATCH", "patch"),
        ("DELETE", "delete"),
        ("OPTIONS", ""),
    ] {
        let method = method.parse().expect("method");
        let parsed = parse(&method, &path, Some("watch=true&fieldSelector=metadata.name%3Dx&labelSelector=a"));
        assert!(matches!(parsed.route, Route::Proxy(_)), "{method}");
        let Attributes::Resource(attributes) = parsed.attributes else { panic!("{method}: a resource") };
        assert_eq!(attributes.verb.as_str(), verb, "{method}");
        assert_eq!((attributes.field_selector, attributes.label_selector), (None, None));
    }
    for method in ["CONNECT", "TRACE", "QUERY", "get"] {
        let method = method.parse().expect("method");
        assert_eq!(parse(&method, &path, None).route, Route::MethodNotAllowed, "{method}");
        assert_eq!(resource(&method, &path, None).verb, Verb::None, "{method}");
    }
}

#[test]
fn both_resources_are_read_alike() {
    let name = || ClusterName::parse("c1").expect("valid");
    for plural in [RESOURCE, VIRTUAL_CLUSTERS] {
        let collection = format!("{G}/{plural}");
        let route = if plural == RESOURCE { Route::Clusters } else { Route::VirtualClusters };
        for (tail, query, asked, verb) in [
            ("", None, ClustersRoute::List, "list"),
            ("/", None, ClustersRoute::List, "list"),
            ("", Some("watch=false"), ClustersRoute::List, "list"),
            ("", Some("watch=true"), ClustersRoute::Watch, "watch"),
            ("", Some("limit=1&watch=1"), ClustersRoute::Watch, "watch"),
            ("/c1", None, ClustersRoute::Get(name()), "get"),
            // `requestinfo.go` only reads `watch` if there is no name.
            ("/c1/", Some("watch=1"), ClustersRoute::Get(name()), "get"),
        ] {
            let path = format!("{collection}{tail}");
            for method in [Method::GET, Method::HEAD] {
                assert_eq!(parse(&method, &path, query).route, route(asked.clone()), "{method} {path}");
                let attributes = resource(&method, &path, query);
                assert_eq!((attributes.verb.as_str(), &*attributes.resource), (verb, plural), "{method} {path}");
                assert_eq!(attributes.name.is_some(), matches!(asked, ClustersRoute::Get(_)));
            }
        }
    }
}

#[test]
fn both_resources_are_read_only() {
    for collection in [COLLECTION, VIRTUAL] {
        for (method, tail, verb) in [
            (Method::POST, "", "create"),
            (Method::DELETE, "", "deletecollection"),
            (Method::PUT, "/c1", "update"),
            (Method::PATCH, "/c1", "patch"),
            (Method::DELETE, "/c1", "delete"),
            (Method::OPTIONS, "", ""),
        ] {
            let path = format!("{collection}{tail}");
            assert_eq!(parse(&method, &path, None).route, Route::MethodNotAllowed, "{method} {path}");
            assert_eq!(resource(&method, &path, None).verb.as_str(), verb);
        }
    }
}

#[test]
fn health_is_read_and_written() {
    let cluster = || ClusterName::parse("c.1").expect("valid");
    for (method, action, verb) in [
        ("GET", Some(HealthAction::Get), "get"),
        ("HEAD", Some(HealthAction::Get), "get"),
        ("PUT", Some(HealthAction::Update), "update"),
        ("PATCH", Some(HealthAction::Patch), "patch"),
        ("POST", None, "create"),
        ("DELETE", None, "delete"),
        ("OPTIONS", None, ""),
    ] {
        let method = method.parse().expect("method");
        let route = action.map_or(Route::MethodNotAllowed, |action| Route::Health { cluster: cluster(), action });
        for tail in ["/c.1/health", "/c.1/health/"] {
            let path = format!("{COLLECTION}{tail}");
            assert_eq!(parse(&method, &path, Some("watch=true")).route, route, "{method} {path}");
            let attributes = resource(&method, &path, None);
            assert_eq!((attributes.verb.as_str(), &*attributes.subresource), (verb, "health"), "{method} {path}");
            assert_eq!((&*attributes.resource, attributes.name.as_deref()), (RESOURCE, Some("c.1")));
        }
    }
}

#[test]
fn traffic_is_read_and_nothing_else() {
    for (method, verb) in [("GET", "get"), ("HEAD", "get"), ("PUT", "update"), ("POST", "create"), ("DELETE", "delete")]
    {
        let method: Method = method.parse().expect("method");
        let cluster = ClusterName::parse("c.1").expect("valid");
        let expected = if verb == "get" { Route::Traffic(cluster) } else { Route::MethodNotAllowed };
        for tail in ["/c.1/traffic", "/c.1/traffic/"] {
            let path = format!("{COLLECTION}{tail}");
            assert_eq!(parse(&method, &path, None).route, expected, "{method} {path}");
            let attributes = resource(&method, &path, None);
            assert_eq!((attributes.verb.as_str(), &*attributes.subresource), (verb, "traffic"), "{method} {path}");
            assert_eq!((&*attributes.resource, attributes.name.as_deref()), (RESOURCE, Some("c.1")));
        }
    }
    for tail in ["/c.1/traffic/x", "/c.1/traffics", "//traffic", "/C1/traffic"] {
        assert_eq!(parse(&Method::GET, &format!("{COLLECTION}{tail}"), None).route, Route::NotFound, "{tail}");
    }
}

#[test]
fn selectors_of_lists_are_reviewed() {
    let query = Some("fieldSelector=metadata.name%3Dc1&labelSelector=a%20in%20(b)");
    let attributes = resource(&Method::GET, COLLECTION, query);
    assert_eq!(attributes.name.as_deref(), Some("c1"));
    assert_eq!(attributes.field_selector.as_deref(), Some("metadata.name=c1"));
    assert_eq!(attributes.label_selector.as_deref(), Some("a in (b)"));

    for query in
        ["fieldSelector=metadata.name!%3Dc1", "fieldSelector=metadata.name%3D..", "fieldSelector=metadata.name%3D"]
    {
        assert_eq!(resource(&Method::GET, COLLECTION, Some(query)).name, None, "{query}");
    }
    let named = resource(&Method::GET, &format!("{COLLECTION}/c1"), query);
    assert_eq!((named.field_selector, named.label_selector), (None, None));
}

#[test]
fn documents_and_probes() {
    let check = |probe, check: &str| Route::ProbeCheck(ProbeCheck { probe, check: check.into() });
    for (path, route) in [
        ("/apis", Route::Discovery(Discovery::Groups)),
        ("/apis/", Route::Discovery(Discovery::Groups)),
        ("/apis/cluster.core.oam.dev", Route::Discovery(Discovery::Group)),
        ("/apis/cluster.core.oam.dev/", Route::Discovery(Discovery::Group)),
        (G, Route::Discovery(Discovery::Version)),
        ("/apis/cluster.core.oam.dev/v1alpha1/", Route::Discovery(Discovery::Version)),
        ("/openapi/v3", Route::OpenApi(OpenApi::Root)),
        ("/openapi/v3/", Route::OpenApi(OpenApi::Root)),
        ("/openapi/v3/apis/cluster.core.oam.dev/v1alpha1", Route::OpenApi(OpenApi::Document)),
        ("/version", Route::Version),
        ("/metrics", Route::Metrics),
        ("/healthz", Route::Probe(Probe::Healthz)),
        ("/livez", Route::Probe(Probe::Livez)),
        ("/readyz", Route::Probe(Probe::Readyz)),
        ("/readyz/hub/secrets", check(Probe::Readyz, "hub/secrets")),
    ] {
        let parsed = parse(&Method::GET, path, None);
        assert_eq!(parsed.route, route, "{path}");
        assert_eq!(parsed.attributes, Attributes::NonResource { path: path.into(), verb: "get".into() }, "{path}");
        assert_eq!(parse(&Method::DELETE, path, None).route, Route::MethodNotAllowed, "{path}");
    }
    let head = parse(&Method::HEAD, "/readyz", None);
    assert_eq!(head.route, Route::Probe(Probe::Readyz));
    assert_eq!(head.attributes, Attributes::NonResource { path: "/readyz".into(), verb: "head".into() });
}

#[test]
fn unserved_paths_are_reviewed_as_what_they_say() {
    let namespaced = resource(&Method::GET, &format!("{G}/namespaces/ns/clustergateways/c1/proxy/x"), None);
    assert_eq!(namespaced.namespace.as_deref(), Some("ns"));
    assert_eq!((&*namespaced.resource, &*namespaced.subresource), ("clustergateways", "proxy"));

    let watch = resource(&Method::GET, &format!("{G}/watch/clustergateways/c1"), Some("labelSelector=a"));
    assert_eq!((watch.verb, watch.name.as_deref(), watch.label_selector), (Verb::Watch, Some("c1"), None));
    let proxy = resource(&Method::GET, &format!("{G}/proxy/clustergateways/c1"), None);
    assert_eq!((proxy.verb, &*proxy.resource), (Verb::Proxy, "clustergateways"));

    let encoded = resource(&Method::GET, &format!("{G}/cluster%67ateways/c1/proxy"), None);
    assert_eq!(encoded.resource, "cluster%67ateways");
    let core = resource(&Method::POST, "/api/v1/namespaces/ns/pods/p/exec", None);
    assert_eq!((core.verb.as_str(), &*core.group, &*core.version), ("create", "", "v1"));
    assert_eq!((core.namespace.as_deref(), core.name.as_deref()), (Some("ns"), Some("p")));
    let namespace = resource(&Method::PUT, "/api/v1/namespaces/ns/status", None);
    assert_eq!((&*namespace.resource, &*namespace.subresource), ("namespaces", "status"));
}

#[test]
fn log_level_is_put_only() {
    let put = parse(&Method::PUT, "/debug/flags/v", None);
    assert_eq!(put.route, Route::LogLevel);
    assert_eq!(put.attributes, Attributes::NonResource { path: "/debug/flags/v".into(), verb: "put".into() });
    assert_eq!(get("/debug/flags/v"), Route::MethodNotAllowed);
    assert_eq!(parse(&Method::PUT, "/debug/flags", None).route, Route::NotFound);
}

/// Paths near the served ones, where mistakes would hide.
fn nearly_served() -> impl Strategy<Value = String> {
    let segment = prop_oneof![
        Just("apis"),
        Just("api"),
        Just("cluster.core.oam.dev"),
        Just("v1alpha1"),
        Just("clustergateways"),
        Just("c1"),
        Just("proxy"),
        Just("watch"),
        Just("namespaces"),
        Just(""),
        Just("."),
        Just(".."),
        Just("%2e%2e"),
        Just("..%2f"),
        Just("%252e"),
        Just("\\.."),
        Just("%5c%2E"),
        Just("é"),
    ];
    let tail = prop::collection::vec(segment, 0..8).prop_map(|segments| segments.join("/"));
    let head = prop_oneof![
        Just(String::from("/")),
        Just(format!("{G}/")),
        Just(format!("{COLLECTION}/")),
        Just(format!("{COLLECTION}/c1/proxy/")),
        Just(format!("{COLLECTION}/c1/proxy")),
    ];
    (head, tail).prop_map(|(head, tail)| head + &tail)
}

fn any_path() -> impl Strategy<Value = String> {
    prop_oneof![nearly_served(), ".*", "/[ -~]*", ".*".prop_map(|tail| format!("{COLLECTION}/c1/proxy/{tail}"))]
}

fn any_method() -> impl Strategy<Value = Method> {
    prop::sample::select(vec!["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "ODD"])
        .prop_map(|name| name.parse().expect("method"))
}

/// An independent implementation of the rule, which decodes everything first.
fn dotted(remainder: &str) -> bool {
    let decoded: Vec<u8> = percent_encoding::percent_decode_str(remainder).collect();
    decoded.split(|byte| matches!(byte, b'/' | b'\\')).any(|segment| matches!(segment, b"." | b".."))
}

proptest! {
    #[test]
    fn what_is_proxied_is_canonical_and_reviewed(method in any_method(), path in any_path(), query in prop::option::of(".*")) {
        let parsed = parse(&method, &path, query.as_deref());
        if let Route::Proxy(proxy) = &parsed.route {
            prop_assert_eq!(proxy.prefix, format!("{COLLECTION}/{}/proxy", proxy.cluster));
            let remainder = &path[proxy.prefix.len()..];
            prop_assert!(remainder.is_empty() || remainder.starts_with('/'));
            prop_assert!(!dotted(remainder));
            let Attributes::Resource(attributes) = &parsed.attributes else { panic!("a resource") };
            prop_assert_eq!(attributes.name.as_deref(), Some(proxy.cluster.as_str()));
            prop_assert_eq!(&*attributes.subresource, "proxy");
            prop_assert_eq!(&attributes.namespace, &None);
        }
        // The short cut for proxied requests must agree with the general rules.
        prop_assert_eq!(parsed.attributes, request_info::attributes(&method, &path, query.as_deref()));
    }

    #[test]
    fn dots_are_all_that_keeps_a_canonical_path_from_its_member(tail in ".*") {
        let path = format!("{COLLECTION}/c1/proxy/{tail}");
        let expected = if dotted(&tail) { None } else { Some(("c1".to_owned(), format!("/{tail}"))) };
        prop_assert_eq!(remainder(&path), expected);
    }
}
