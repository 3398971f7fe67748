use http::Method;
use proptest::prelude::*;

use crate::access::Attributes;
use crate::route::dialect::golden;
use crate::route::{
    Dialect, Dialects, KarmadaMode, NoMember, ProxyRoute, RawRequest, Route, Served, parse, request_info,
};

const ON: Served = Served::Gateway(Dialects { kcp: true, karmada: KarmadaMode::Off });

fn route(path: &str, served: Served) -> Route<'_> {
    parse(RawRequest { served, ..RawRequest::new(&Method::GET, path, None) }).route
}

fn proxied(path: &str) -> Option<ProxyRoute<'_>> {
    match route(path, ON) {
        Route::Proxy(route) => Some(route),
        _ => None,
    }
}

/// The cluster, and the member's part.
fn asked(path: &str) -> Option<(String, &str)> {
    proxied(path).map(|route| (route.cluster.to_string(), &path[route.prefix.len()..]))
}

#[test]
fn golden_table() {
    let requests = [
        "GET /clusters/berlin",
        "GET /clusters/berlin/",
        "GET /clusters/berlin/api/v1/namespaces/a%2Fb/pods?watch=1",
        "DELETE /clusters/root:org:ws//apis//x%20y/?a=1",
        // Clusters with the names of API groups.
        "GET /clusters/apps/apis/apps/v1/deployments",
        "GET /clusters/cluster:core:oam:dev/api",
        "!GET /clusters/berlin/api/v1/namespaces/ns/pods/p/exec?command=sh",
        "!GET /clusters/berlin/api/v1/pods?watch=1",
        "OPTIONS /clusters/berlin/api",
        "TRACE /clusters/berlin/api",
        "GET /clusters/berlin/../x",
        "GET /clusters/berlin/%2e%2E/x",
        "GET /clusters/berlin/..%2fx",
        "GET /clusters//x",
        "GET /clusters/",
        "GET /clusters/a:b:/x",
        "GET /clusters/:a/x",
        "GET /clusters/a.b/x",
        "GET /clusters/../x",
        "GET /clusters/..",
        "GET /clusters/%2e%2e/x",
        "GET /clusters/*/api",
        "GET /clusters/%2A/api",
        "GET /clusters/a%2Fb/api",
        "GET /clusters/a%3Ab/api",
        "GET /clusters/Berlin/api",
        "GET /clusters/berlin;x/api",
        "GET /clusters",
        "GET /Clusters/berlin/api",
        "GET //clusters/berlin/api",
        "GET /clusters%2Fberlin/api",
        "GET /services/clusters/berlin/api",
        "GET /apis/cluster.core.oam.dev/v1alpha1/clustergateways/berlin/proxy/clusters/paris/api",
    ];
    insta::assert_snapshot!(golden::table(ON, &requests));
}

#[test]
fn a_workspace_is_a_cluster_with_dots() {
    assert_eq!(asked("/clusters/a:b:c/api/"), Some(("a.b.c".to_owned(), "/api/")));
    assert_eq!(asked("/clusters/0"), Some(("0".to_owned(), "")));
    let part = "a".repeat(63);
    assert_eq!(asked(&format!("/clusters/{part}:x/")), Some((format!("{part}.x"), "/")));
    assert_eq!(route(&format!("/clusters/{part}a/"), ON), Route::NoMember(NoMember::Workspace));
    // Longer than an object's name can be.
    let path = format!("/clusters/{part}:{part}:{part}:{part}/");
    assert_eq!(route(&path, ON), Route::NoMember(NoMember::Workspace));
}

#[test]
fn what_is_off_is_not_told_from_what_never_was() {
    for path in ["/clusters/berlin/api", "/clusters/*/api", "/clusters//", "/clusters/..", "/clusters/"] {
        assert_eq!(route(path, Served::default()), Route::NoMember(NoMember::Off), "{path}");
    }
    assert_eq!(route("/clusters", Served::default()), Route::NotFound);
}

proptest! {
    #[test]
    fn what_is_proxied_has_one_spelling_and_is_reviewed_as_its_cluster(path in any_path(), query in prop::option::of(".*")) {
        let asked = RawRequest { served: ON, ..RawRequest::new(&Method::GET, &path, query.as_deref()) };
        let parsed = parse(asked);
        let attributes = request_info::attributes(&Method::GET, &path, query.as_deref());
        let Route::Proxy(proxied) = parsed.route else {
            prop_assert!(!path.starts_with("/clusters/") || !matches!(parsed.route, Route::NotFound));
            return Ok(());
        };
        if proxied.dialect == Dialect::Native {
            prop_assert_eq!(parsed.attributes, attributes);
            return Ok(());
        }
        let canonical = format!("/clusters/{}", proxied.cluster.as_str().replace('.', ":"));
        prop_assert_eq!(proxied.prefix, canonical);
        let native = format!("/apis/cluster.core.oam.dev/v1alpha1/clustergateways/{}/proxy{}", proxied.cluster, &path[proxied.prefix.len()..]);
        let as_native = parse(RawRequest::new(&Method::GET, &native, query.as_deref()));
        prop_assert_eq!(&parsed.attributes, &as_native.attributes);
        prop_assert!(matches!(parsed.attributes, Attributes::Resource(_)));
        let Route::Proxy(as_native) = as_native.route else { panic!("{native} is proxied") };
        prop_assert_eq!((proxied.cluster, proxied.asks), (as_native.cluster, as_native.asks));
    }
}

fn any_path() -> impl Strategy<Value = String> {
    let name = prop_oneof!["[a-z0-9:.%*-]{0,8}", "[a-c](:[a-c0-9]){0,3}", Just("..".to_owned())];
    let tail = prop_oneof![Just(String::new()), "/[ -~]{0,12}", ".{0,6}", Just("/api/v1/pods".to_owned())];
    let head = prop_oneof![4 => Just("/clusters/"), 1 => Just("/apis/cluster.core.oam.dev/v1alpha1/clustergateways/"), 1 => Just("//clusters/")];
    (head, name, tail).prop_map(|(head, name, tail)| format!("{head}{name}{tail}"))
}
