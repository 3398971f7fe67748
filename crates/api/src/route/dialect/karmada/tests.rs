use http::Method;
use proptest::prelude::*;

use crate::access::Attributes;
use crate::route::dialect::golden;
use crate::route::{Dialect, Dialects, KarmadaMode, NoMember, RawRequest, Route, Served, parse, request_info};

const ON: Served = Served::Gateway(Dialects { kcp: false, karmada: KarmadaMode::Standalone });
const PREFIX: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";

fn route(path: &str, served: Served) -> Route<'_> {
    parse(RawRequest { served, ..RawRequest::new(&Method::GET, path, None) }).route
}

#[test]
fn golden_table() {
    let requests = [
        "GET /apis/cluster.karmada.io/v1alpha1/clusters/berlin/proxy",
        "GET /apis/cluster.karmada.io/v1alpha1/clusters/berlin/proxy/api/v1/namespaces/a%2Fb/pods?watch=1",
        "DELETE /apis/cluster.karmada.io/v1alpha1/clusters/a.b/proxy//apis//x%20y/?a=1",
        "!GET /apis/cluster.karmada.io/v1alpha1/clusters/berlin/proxy/api/v1/namespaces/ns/pods/p/exec?command=sh",
        "!GET /apis/cluster.karmada.io/v1alpha1/clusters/berlin/proxy/api/v1/pods?watch=1",
        "TRACE /apis/cluster.karmada.io/v1alpha1/clusters/berlin/proxy/api",
        "GET /apis/cluster.karmada.io/v1alpha1/clusters/berlin/proxy/..%2fx",
        "GET /apis/cluster.karmada.io/v1alpha1/clusters/*/proxy/api/v1/pods",
        "GET /apis/cluster.karmada.io/v1alpha1/clusters/%2A/proxy/api/v1/pods",
        "GET /apis/cluster.karmada.io/v1alpha1/clusters/a%2Fb/proxy/api",
        "GET /apis/cluster.karmada.io/v1alpha1/clusters//proxy/api",
        "GET /apis/cluster.karmada.io/v1alpha1/clusters/Berlin/proxy/api",
        // Clusters with the name of an API group, of the path to groups, or of a subresource.
        "GET /apis/cluster.karmada.io/v1alpha1/clusters/cluster.core.oam.dev/proxy/api",
        "GET /apis/cluster.karmada.io/v1alpha1/clusters/apis/proxy/apis/apps/v1",
        "GET /apis/cluster.karmada.io/v1alpha1/clusters/proxy/proxy/proxy",
        // Of the rest of the group, only discovery is served.
        "GET /apis/cluster.karmada.io",
        "GET /apis/cluster.karmada.io/v1alpha1/",
        "GET /apis/cluster.karmada.io/v1alpha1/clusters/berlin",
        "GET /apis/cluster.karmada.io/v1alpha1/clusters/berlin/proxyfoo",
        "GET /apis/cluster.karmada.io/v1alpha1/clusters/berlin/prox%79/api",
        "GET /apis/cluster.karmada.io/v1alpha1/namespaces/ns/clusters/berlin/proxy/api",
        "GET /apis/cluster.karmada.io/v1beta1/clusters/berlin/proxy/api",
        "GET //apis/cluster.karmada.io/v1alpha1/clusters/berlin/proxy/api",
        "GET /apis/cluster.karmada.io//v1alpha1/clusters/berlin/proxy/api",
        "GET /apis/cluster.karmada.iox/v1alpha1/clusters/berlin/proxy/api",
        "GET /apis/cluster.core.oam.dev/v1alpha1/clustergateways/berlin/proxy/api",
    ];
    insta::assert_snapshot!(golden::table(ON, &requests));
}

#[test]
fn where_it_is_off_nothing_of_the_group_is_told_from_what_never_was() {
    for tail in
        ["", "/", "/v1alpha1", "/v1alpha1/clusters", "/v1alpha1/clusters/c1/proxy", "/v1alpha1/clusters/*/proxy"]
    {
        let path = format!("/apis/cluster.karmada.io{tail}");
        assert_eq!(route(&path, Served::default()), Route::NoMember(NoMember::Off), "{path}");
    }
    assert_eq!(route("/apis/cluster.karmada.iox", Served::default()), Route::NotFound);
}

proptest! {
    #[test]
    fn what_is_proxied_has_one_spelling_and_is_reviewed_as_karmadas(path in any_path(), query in prop::option::of(".*")) {
        let parsed = parse(RawRequest { served: ON, ..RawRequest::new(&Method::GET, &path, query.as_deref()) });
        let Route::Proxy(proxied) = parsed.route else { return Ok(()) };
        // By the general rules, for each group.
        prop_assert_eq!(&parsed.attributes, &request_info::attributes(&Method::GET, &path, query.as_deref()));
        let Attributes::Resource(reviewed) = &parsed.attributes else { panic!("a resource") };
        prop_assert_eq!(reviewed.name.as_deref(), Some(proxied.cluster.as_str()));
        let (group, resource) = match proxied.dialect {
            Dialect::Karmada => ("cluster.karmada.io", "clusters"),
            _ => ("cluster.core.oam.dev", "clustergateways"),
        };
        prop_assert_eq!((&*reviewed.group, &*reviewed.resource, &*reviewed.subresource), (group, resource, "proxy"));
        prop_assert_eq!(proxied.prefix, format!("/apis/{group}/v1alpha1/{resource}/{}/proxy", proxied.cluster));
    }
}

fn any_path() -> impl Strategy<Value = String> {
    let name = prop_oneof!["[a-z0-9.%*-]{0,8}", Just("c1".to_owned()), Just("..".to_owned()), Just("proxy".to_owned())];
    let tail = prop_oneof![Just(String::new()), "/[ -~]{0,12}", ".{0,6}", Just("/api/v1/pods".to_owned())];
    let native = Just("/apis/cluster.core.oam.dev/v1alpha1/clustergateways");
    (prop_oneof![4 => Just(PREFIX), 1 => native], name, prop_oneof![4 => Just("/proxy"), 1 => Just("/")], tail)
        .prop_map(|(head, name, proxy, tail)| format!("{head}/{name}{proxy}{tail}"))
}
