use http::Method;
use proptest::prelude::*;

use crate::route::dialect::golden;
use crate::route::{BadPath, Dialect, NoMember, RawRequest, Route, Served, parse};

fn route<'a>(path: &'a str, query: Option<&'a str>) -> Route<'a> {
    parse(RawRequest { served: Served::UserServer, ..RawRequest::new(&Method::GET, path, query) }).route
}

#[test]
fn golden_table() {
    let requests = [
        "GET /berlin",
        "GET /berlin/",
        "GET /berlin/api/v1/namespaces/a%2Fb/pods?watch=1",
        "POST /root.org.ws//apis//x%20y/?a=1",
        "!GET /berlin/api/v1/namespaces/ns/pods/p/exec?command=sh",
        "!GET /berlin/api/v1/pods?watch=1",
        "TRACE /berlin/api",
        "GET /berlin/../x",
        "GET /berlin/..%2fx",
        "GET /",
        "GET //berlin/api",
        "GET /../berlin",
        "GET /Berlin/api",
        "GET /%62erlin/api",
        "GET /a:b/api",
        "GET /berlin%2Fapi",
        // The gateway's own paths are cluster names here.
        "GET /apis/cluster.core.oam.dev/v1alpha1/clustergateways/paris/proxy/api",
        "GET /clusters/paris/api",
        "GET /healthz",
        "GET /metrics",
        "GET /berlin/api/v1/namespaces/ns/services/https:web:8443/proxy-service/ping?x=1",
        "POST /berlin/api/v1/namespaces/ns/services/web/proxy-service",
        "GET /berlin/api/v1/namespaces/ns/services/web/proxy%2Dservice/ping",
        "GET /berlin/api/v1/namespaces/ns/services/web/proxy/ping",
        "GET /berlin/api/v1/namespaces/ns/pods/proxy-service/log",
    ];
    insta::assert_snapshot!(golden::table(Served::UserServer, &requests));
}

#[test]
fn only_a_members_paths_are_served() {
    for path in ["/", "", "//", "/../x", "/.", "/C1/x", "/a_b", "/%2e%2e/x", "*", "/\u{e9}/x"] {
        assert_eq!(route(path, None), Route::NoMember(NoMember::UserServer), "{path}");
    }
    let long = format!("/{}/x", "a".repeat(254));
    assert_eq!(route(&long, None), Route::NoMember(NoMember::UserServer));
    assert_eq!(route("/c1/a/../b", None), Route::BadRequest(BadPath::DotSegment));
}

proptest! {
    #[test]
    fn what_is_proxied_is_what_the_native_path_says(path in any_path(), query in prop::option::of(".*")) {
        let asked = RawRequest { served: Served::UserServer, ..RawRequest::new(&Method::GET, &path, query.as_deref()) };
        let parsed = parse(asked);
        let Route::Proxy(proxied) = parsed.route else {
            prop_assert!(matches!(parsed.route, Route::NoMember(_) | Route::BadRequest(_) | Route::WorkloadService));
            return Ok(());
        };
        prop_assert_eq!(proxied.dialect, Dialect::UserServer);
        prop_assert_eq!(proxied.prefix, format!("/{}", proxied.cluster));
        let native = format!("/apis/cluster.core.oam.dev/v1alpha1/clustergateways/{}/proxy{}", proxied.cluster, &path[proxied.prefix.len()..]);
        let as_native = parse(RawRequest::new(&Method::GET, &native, query.as_deref()));
        prop_assert_eq!(&parsed.attributes, &as_native.attributes);
        let Route::Proxy(as_native) = as_native.route else { panic!("{native} is proxied") };
        prop_assert_eq!((proxied.cluster, proxied.asks), (as_native.cluster, as_native.asks));
    }
}

fn any_path() -> impl Strategy<Value = String> {
    let name = prop_oneof!["[a-z0-9.%-]{0,8}", Just("apis".to_owned()), Just("..".to_owned())];
    let service = Just("/api/v1/namespaces/ns/services/s/proxy-service/x".to_owned());
    let tail = prop_oneof![Just(String::new()), "/[ -~]{0,12}", ".{0,6}", Just("/api/v1/pods".to_owned()), service];
    (prop_oneof![4 => Just("/"), 1 => Just("//"), 1 => Just("")], name, tail)
        .prop_map(|(head, name, tail)| format!("{head}{name}{tail}"))
}
