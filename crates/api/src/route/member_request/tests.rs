//! A table of kube-apiserver's readings of paths, and properties for all other paths.
//!
//! The rows were compared with the results of `RequestInfoFactory` of k8s.io/apiserver 0.37.

use http::Method;
use proptest::prelude::*;

use super::MemberRequest;
use crate::access::{Attributes, ResourceAttributes, Verb};
use crate::route::request_info;

fn member_attributes(method: &Method, path: &str, query: Option<&str>, upgrade: bool) -> Attributes {
    MemberRequest::read(method, path, query, upgrade).attributes()
}

fn can_be_decoded(path: &str) -> bool {
    MemberRequest::read(&Method::GET, path, None, false).can_be_decoded()
}

/// `verb group/version resource/subresource namespace name`, or `verb path`. `-` stands for an
/// empty part.
fn summary(attributes: &Attributes) -> String {
    let dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    match attributes {
        Attributes::NonResource { path, verb } => format!("{verb} {path}"),
        Attributes::Resource(it) => format!(
            "{} {}/{} {}/{} {} {}",
            dash(it.verb.as_str()),
            dash(&it.group),
            dash(&it.version),
            dash(&it.resource),
            dash(&it.subresource),
            dash(it.namespace.as_deref().unwrap_or_default()),
            dash(it.name.as_deref().unwrap_or_default()),
        ),
    }
}

/// `request` is `METHOD path[?query]`.
fn label(request: &str, upgrade: bool) -> String {
    let (method, target) = request.split_once(' ').expect("a method");
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    summary(&member_attributes(&method.parse().expect("a method"), path, query, upgrade))
}

fn resource(request: &str) -> ResourceAttributes {
    let (path, query) = request.split_once('?').map_or((request, None), |(path, query)| (path, Some(query)));
    match member_attributes(&Method::GET, path, query, false) {
        Attributes::Resource(attributes) => attributes,
        other @ Attributes::NonResource { .. } => panic!("{request} is a resource request, got {other:?}"),
    }
}

#[test]
fn requests_are_labelled_as_kube_apiserver_labels_them() {
    for (request, expected) in TABLE {
        assert_eq!(label(request, false), *expected, "{request}");
    }
}

const TABLE: &[(&str, &str)] = &[
    // Verbs by method and by whether there is a name.
    ("GET /api/v1/pods", "list -/v1 pods/- - -"),
    ("HEAD /api/v1/pods", "list -/v1 pods/- - -"),
    ("GET /api/v1/pods/", "list -/v1 pods/- - -"),
    ("POST /api/v1/namespaces/ns/pods", "create -/v1 pods/- ns -"),
    ("DELETE /api/v1/namespaces/ns/pods", "deletecollection -/v1 pods/- ns -"),
    ("DELETE /api/v1/nodes", "deletecollection -/v1 nodes/- - -"),
    ("GET /api/v1/namespaces/ns/pods/p", "get -/v1 pods/- ns p"),
    ("HEAD /api/v1/namespaces/ns/pods/p", "get -/v1 pods/- ns p"),
    ("PUT /api/v1/namespaces/ns/pods/p", "update -/v1 pods/- ns p"),
    ("PATCH /apis/apps/v1/namespaces/ns/deployments/d", "patch apps/v1 deployments/- ns d"),
    ("DELETE /apis/apps/v1/namespaces/ns/deployments/d", "delete apps/v1 deployments/- ns d"),
    ("OPTIONS /api/v1/pods", "- -/v1 pods/- - -"),
    ("QUERY /api/v1/namespaces/ns/pods/p", "- -/v1 pods/- ns p"),
    // Subresources. The path after them is ignored.
    ("GET /api/v1/namespaces/ns/pods/p/log?follow=true", "get -/v1 pods/log ns p"),
    ("POST /api/v1/namespaces/ns/pods/p/exec?command=a", "create -/v1 pods/exec ns p"),
    ("GET /api/v1/namespaces/ns/pods/p/exec?command=a", "get -/v1 pods/exec ns p"),
    ("POST /api/v1/namespaces/ns/pods/p/eviction", "create -/v1 pods/eviction ns p"),
    ("GET /api/v1/namespaces/ns/services/s/proxy/a/b", "get -/v1 services/proxy ns s"),
    ("GET /apis/apps/v1/namespaces/ns/deployments/d/scale", "get apps/v1 deployments/scale ns d"),
    // A namespace is an object and a scope.
    ("GET /api/v1/namespaces", "list -/v1 namespaces/- - -"),
    ("GET /api/v1/namespaces/", "list -/v1 namespaces/- - -"),
    ("GET /api/v1/namespaces/ns", "get -/v1 namespaces/- ns ns"),
    ("DELETE /api/v1/namespaces/ns", "delete -/v1 namespaces/- ns ns"),
    ("PUT /api/v1/namespaces/ns/status", "update -/v1 namespaces/status ns ns"),
    ("PUT /api/v1/namespaces/ns/finalize", "update -/v1 namespaces/finalize ns ns"),
    ("GET /apis/x.io/v1/namespaces/ns/status/s", "get x.io/v1 namespaces/status ns ns"),
    ("GET /api/v1/namespaces/ns/namespaces/x", "get -/v1 namespaces/- ns x"),
    // Watches: the first value counts, and only without a name.
    ("GET /api/v1/pods?watch=true", "watch -/v1 pods/- - -"),
    ("GET /api/v1/pods?watch", "watch -/v1 pods/- - -"),
    ("GET /api/v1/pods?watch=1&watch=0", "watch -/v1 pods/- - -"),
    ("GET /api/v1/pods?watch=0&watch=1", "list -/v1 pods/- - -"),
    ("GET /api/v1/pods?watch=False", "list -/v1 pods/- - -"),
    ("GET /api/v1/pods?w%61tch=1", "watch -/v1 pods/- - -"),
    ("GET /api/v1/pods?watch=1;x", "list -/v1 pods/- - -"),
    ("GET /api/v1/namespaces/ns/pods/p?watch=true", "get -/v1 pods/- ns p"),
    ("DELETE /api/v1/pods?watch=true", "deletecollection -/v1 pods/- - -"),
    // A selected name, unless one of the options does not decode.
    ("GET /api/v1/pods?fieldSelector=metadata.name=p", "list -/v1 pods/- - p"),
    ("GET /api/v1/pods?watch=1&fieldSelector=metadata.name%3Dp,spec.x!%3Dy", "watch -/v1 pods/- - p"),
    ("GET /api/v1/pods?fieldSelector=metadata.name!=p", "list -/v1 pods/- - -"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a/b", "list -/v1 pods/- - -"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=p,x", "list -/v1 pods/- - -"),
    ("GET /api/v1/pods?limit=x&fieldSelector=metadata.name=p", "list -/v1 pods/- - -"),
    ("GET /api/v1/pods?limit=5&fieldSelector=metadata.name=p", "list -/v1 pods/- - p"),
    ("GET /api/v1/pods?timeoutSeconds=&watch=1&fieldSelector=metadata.name=p", "watch -/v1 pods/- - -"),
    ("GET /api/v1/pods?labelSelector=a+in+()&fieldSelector=metadata.name=p", "list -/v1 pods/- - p"),
    ("GET /api/v1/pods?labelSelector=a+b&fieldSelector=metadata.name=p", "list -/v1 pods/- - -"),
    ("DELETE /api/v1/pods?fieldSelector=metadata.name=p", "deletecollection -/v1 pods/- - -"),
    // The old verbs in paths.
    ("GET /api/v1/watch/pods", "watch -/v1 pods/- - -"),
    ("DELETE /api/v1/watch/pods", "watch -/v1 pods/- - -"),
    ("GET /api/v1/watch/namespaces/ns/pods/p", "watch -/v1 pods/- ns p"),
    ("GET /api/v1/watch/namespaces/ns", "watch -/v1 namespaces/- ns ns"),
    ("GET /api/v1/proxy/namespaces/ns/pods/p/x/y", "proxy -/v1 pods/- ns p"),
    ("POST /api/v1/proxy/nodes/n", "proxy -/v1 nodes/- - n"),
    ("GET /apis/g/v1/namespaces/ns/watch/w", "get g/v1 watch/- ns w"),
    // Slashes at the ends do not count. Other slashes do.
    ("GET //api/v1/pods//", "list -/v1 pods/- - -"),
    ("GET /api//v1/pods", "get -/- v1/- - pods"),
    ("GET /api/v1//pods", "get -/v1 -/- - pods"),
    ("GET /api/v1/namespaces//pods/p", "get -/v1 pods/- - p"),
    ("GET /api/v1/pods//log", "list -/v1 pods/log - -"),
    ("DELETE /api/v1/namespaces/ns/pods//x", "deletecollection -/v1 pods/x ns -"),
    // Everything is decoded once.
    ("GET /api/v1/namespaces%2Fns%2Fsecrets/s", "get -/v1 secrets/- ns s"),
    ("GET /%61pi/v1/n%61mespaces/ns/pods", "list -/v1 pods/- ns -"),
    (
        "GET /apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
        "get rbac.authorization.k8s.io/v1 clusterroles/- - system:node",
    ),
    ("GET /api/v1/pods%2fp", "get -/v1 pods/- - p"),
    ("GET /api/v1/namespaces/ns/pods/%252F", "get -/v1 pods/- ns %2F"),
    ("GET /api/v1/namespaces/ns/pods/a+b", "get -/v1 pods/- ns a+b"),
    ("GET /api/v1/watch%2Fpods", "watch -/v1 pods/- - -"),
    ("GET /api/v1/pods/p%3Fwatch=1", "get -/v1 pods/- - p?watch=1"),
    // A path that a member refuses for its escapes is not split.
    ("GET /api/v1/pods/%zz", "get /api/v1/pods/%zz"),
    ("GET /api/v1/pods/%2", "get /api/v1/pods/%2"),
    ("DELETE /api/v1/pods/%", "delete /api/v1/pods/%"),
    // Non-resource paths, as they are after decoding.
    ("GET /", "get /"),
    ("GET /api", "get /api"),
    ("GET /api/v1", "get /api/v1"),
    ("GET /api/v1/", "get /api/v1/"),
    ("GET /apis/apps/v1", "get /apis/apps/v1"),
    ("GET /apis/apps/v1/", "get /apis/apps/v1/"),
    ("GET /apis/v1/pods", "get /apis/v1/pods"),
    ("HEAD /version", "head /version"),
    ("POST /healthz/x%2fy", "post /healthz/x/y"),
    ("GET /API/v1/pods", "get /API/v1/pods"),
    ("GET /openapi/v3/apis/apps/v1?hash=x", "get /openapi/v3/apis/apps/v1"),
    ("ODD /logs/", "odd /logs/"),
];

#[test]
fn an_empty_path_is_the_members_root() {
    assert_eq!(summary(&member_attributes(&Method::GET, "", None, false)), "get /");
}

#[test]
fn escapes_are_two_hexadecimal_digits() {
    for good in ["", "/", "/a%2Fb", "/%c3%A9", "/%25zz", "/%ff"] {
        assert!(can_be_decoded(good), "{good}");
    }
    for bad in ["/%", "/%2", "/a%zz", "/%2x", "/%%20", "/%+1", "/%2é", "/%é", "/%20%"] {
        assert!(!can_be_decoded(bad), "{bad}");
    }
}

#[test]
fn joined_or_turned_slashes_make_a_second_reading() {
    for one in [
        "",
        "/",
        "//",
        "//api/v1/pods//",
        "/%2Fapi/v1/pods%2f/",
        "/api/v1/namespaces/ns/pods/p%2Flog",
        "/api/v1/namespaces/ns/pods/p%252F%252Flog",
        // The path after the subresource belongs to the workload.
        "/api/v1/namespaces/ns/services/s/proxy//x",
        "/api/v1/namespaces/ns/services/s/proxy/a\\b",
        "/api/v1/namespaces/ns/services/s/proxy/a%5Cb%2F%2fc//",
        "/api/v1/nodes/n%2Fproxy//logs",
        "/version",
    ] {
        assert!(read(&format!("GET {one}"), false).has_one_reading(), "{one}");
    }
    for two in [
        "/api/v1/namespaces//pods/p",
        "/api/v1/namespaces/ns/pods/p//log",
        "/api/v1/namespaces/ns/pods/p%2F%2Flog",
        "/api/v1/namespaces/ns/pods/p/%2flog",
        "/api/v1\\secrets",
        "/api/v1%5Csecrets",
        "/api/v1%5csecrets",
        "/\\api/v1/secrets",
        "/api/v1/secrets\\",
        // No subresource `proxy`, or one that moves when a proxy merges slashes.
        "/api/v1/nodes/n//proxy/x",
        "/api/v1/nodes//n/proxy/x",
        "/api/v1/nodes/n\\x/proxy/x",
        "/api/v1/nodes/n/proxy\\x",
        "/api/v1/namespaces/ns/proxy//x",
        "/api/v1/proxy/nodes/n//x",
        "/apis/x.io/v1/things/proxy//x",
        "/proxy//x",
        "/api/v1/pods%zz",
    ] {
        assert!(!read(&format!("GET {two}"), false).has_one_reading(), "{two}");
    }
}

#[test]
fn opening_a_stream_is_a_create() {
    for subresource in ["exec", "attach", "portforward", "ex%65c", "exec/", "exec/x"] {
        let request = format!("GET /api/v1/namespaces/ns/pods/p/{subresource}?command=a");
        assert!(label(&request, true).starts_with("create -/v1 pods/"), "{request}");
        assert!(label(&request, false).starts_with("get -/v1 pods/"), "{request}");
    }
    for (request, expected) in [
        ("GET /api/v1/pods?watch=1", "watch -/v1 pods/- - -"),
        ("GET /api/v1/namespaces/ns/pods/p/log", "get -/v1 pods/log ns p"),
        ("GET /api/v1/nodes/n/proxy/exec/ns/p/c", "get -/v1 nodes/proxy - n"),
        ("GET /apis/x.io/v1/namespaces/ns/pods/p/exec", "get x.io/v1 pods/exec ns p"),
    ] {
        assert_eq!(label(request, true), expected, "{request}");
    }
}

#[test]
fn only_reads_become_creations_by_an_upgrade() {
    for (method, expected) in [("DELETE", "delete"), ("PUT", "update"), ("PATCH", "patch"), ("POST", "create")] {
        for target in ["exec", "attach", "portforward"] {
            let request = format!("{method} /api/v1/namespaces/ns/pods/p/{target}");
            assert!(label(&request, true).starts_with(&format!("{expected} -/v1 pods/")), "{request}");
        }
    }
}

fn read(request: &str, upgrade: bool) -> MemberRequest<'_> {
    let (method, target) = request.split_once(' ').expect("a method");
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let method = match method {
        "GET" => const { &Method::GET },
        "HEAD" => const { &Method::HEAD },
        "POST" => const { &Method::POST },
        "DELETE" => const { &Method::DELETE },
        other => panic!("{other} is not asked here"),
    };
    MemberRequest::read(method, path, query, upgrade)
}

#[test]
fn watches_and_followed_logs_have_no_end_and_nothing_else() {
    for request in [
        "GET /api/v1/pods?watch=1",
        "GET /api/v1/namespaces/ns/pods/?watch",
        "GET /apis/apps/v1/deployments?limit=5&w%61tch=true",
        "GET /%61pi/v1/pods?watch=1",
        "GET /api/v1/pods?watch=1&fieldSelector=metadata.name%3Dp",
        "GET /api/v1/watch/pods",
        "GET /api/v1/watch/namespaces/ns/pods/p",
        "GET //apis/apps/v1/watch/deployments",
        "GET /api/v1/namespaces/ns/pods/p/log?follow",
        "GET /api/v1/namespaces/ns/pods/p/log?container=c&follow=true",
        "GET /api/v1/namespaces/ns/pods/p%2Flog?follow=true",
    ] {
        let asks = read(request, false);
        assert!(asks.is_endless(), "{request}");
        assert_eq!(asks.is_watch(), !request.contains("follow"), "{request}");
    }
    for request in [
        "GET /api/v1/pods",
        "GET /api/v1/pods?watch=0",
        "GET /api/v1/pods?follow=true",
        // The path has a name, so the query changes nothing.
        "GET /api/v1/namespaces/ns/pods/p?watch=true",
        "GET /api/v1/namespaces/ns/pods/p/log?watch=true",
        "GET /api/v1/namespaces/ns/pods/p/log?follow=false&follow=true",
        "GET /apis/x.io/v1/namespaces/ns/pods/p/log?follow=true",
        // The path behind a proxy belongs to the workload.
        "GET /api/v1/namespaces/ns/services/s/proxy/download?watch=true&follow=true",
        "GET /api/v1/nodes/n/proxy/logs/syslog?follow=true",
        "GET /api/v1/proxy/namespaces/ns/services/s/x?watch=1",
        "GET /version?watch=1",
        "GET /?follow",
        "GET /openapi/v2?watch=1",
        // A write is never a watch.
        "POST /api/v1/pods?watch=1",
        "DELETE /api/v1/watch/pods",
        "HEAD /api/v1/pods?watch=1",
        // Other servers may find a name where kube-apiserver finds none.
        "GET /apis/x.io/v1/namespaces/ns/vms//vm/console?watch=1",
        "GET /apis/x.io/v1/vms//console?watch=1",
        "GET /apis/x.io/v1/vms\\vm\\console?watch=1",
        "GET /apis/x.io/v1/vms%5Cvm?watch=1",
        "GET /api/v1/watch/namespaces/ns/pods/p/exec",
        "GET /api/v1/pods%zz?watch=1",
    ] {
        assert!(!read(request, false).is_endless(), "{request}");
    }
}

#[test]
fn an_upgrade_connects_unless_the_member_takes_it_for_a_watch() {
    for request in ["GET /api/v1/pods?watch=true", "GET /api/v1/watch/namespaces/ns/pods"] {
        assert!(!read(request, true).connects() && !read(request, false).connects(), "{request}");
    }
    for request in [
        "GET /apis/subresources.kubevirt.io/v1/namespaces/ns/virtualmachineinstances/vm/console?watch=true",
        "GET /apis/subresources.kubevirt.io/v1/namespaces/ns/virtualmachineinstances//vnc?watch=true",
        "GET /apis/subresources.kubevirt.io/v1/watch/namespaces/ns/virtualmachineinstances/vm/console",
        "GET /apis/x.io/v1/namespaces/ns/things/t?watch=1",
        "GET /api/v1/namespaces/ns/pods/p/exec?watch=1",
        "GET /api/v1/nodes/n/proxy/exec/ns/p/c?watch=1",
        "GET /api/v1/namespaces/ns/pods/p/log?follow=true",
        "GET /terminal?watch=true",
        "GET /api/v1/pods",
    ] {
        assert!(read(request, true).connects() && !read(request, false).connects(), "{request}");
    }
}

#[test]
fn what_a_workload_answers_says_nothing_of_what_was_done() {
    assert!(read("POST /api/v1/namespaces/ns/pods", false).may_be_repeated());
    assert!(read("GET /api/v1/namespaces/ns/services/s/proxy/x", false).may_be_repeated());
    assert!(!read("POST /api/v1/namespaces/ns/services/s/proxy/x", false).may_be_repeated());
}

#[test]
fn the_wish_to_act_as_oneself_is_one_exact_word() {
    for (query, expected) in [
        ("impersonate=true", true),
        ("a=b&impersonate=tru%65&follow=false", true),
        ("impersonate=1&x=%zz", false),
        ("impersonate=yes&impersonate=true", false),
        ("impersonate=True", false),
        ("", false),
    ] {
        let request = format!("GET /api/v1/pods?{query}");
        assert_eq!(read(&request, false).impersonates(), expected, "{query}");
    }
}

#[test]
fn selectors_belong_to_lists_watches_and_deletions_of_collections() {
    let query = "?fieldSelector=spec.x%3D1&labelSelector=a%20in%20(b)";
    let selected = resource(&format!("/api/v1/pods{query}"));
    assert_eq!(selected.field_selector.as_deref(), Some("spec.x=1"));
    assert_eq!(selected.label_selector.as_deref(), Some("a in (b)"));
    for path in ["/api/v1/watch/pods", "/api/v1/namespaces/ns/pods/p"] {
        let unselected = resource(&format!("{path}{query}"));
        assert_eq!((unselected.field_selector, unselected.label_selector), (None, None), "{path}");
    }
}

#[test]
fn bytes_that_are_no_text_name_nothing_that_exists() {
    assert_eq!(resource("/api/v1/namespaces/ns/pods/p%ff").name.as_deref(), Some("p\u{fffd}"));
}

/// Paths in which mistakes would hide, before any encoding.
fn plain_path() -> impl Strategy<Value = String> {
    let segment = prop::sample::select(vec![
        "api",
        "apis",
        "v1",
        "apps",
        "namespaces",
        "ns",
        "pods",
        "p",
        "exec",
        "status",
        "watch",
        "proxy",
        "",
        "é",
        ":",
        "+",
    ]);
    prop::collection::vec(segment, 0..9).prop_map(|segments| format!("/{}", segments.join("/")))
}

/// `path` with the characters whose bit is set in `which` percent-encoded.
fn encoded(path: &str, which: u64) -> String {
    let encode = |(at, byte): (usize, u8)| match byte {
        plain if plain.is_ascii() && which >> (at % 64) & 1 == 0 => char::from(plain).to_string(),
        byte if which >> (at % 63) & 1 == 0 => format!("%{byte:02x}"),
        byte => format!("%{byte:02X}"),
    };
    path.bytes().enumerate().map(encode).collect()
}

fn any_method() -> impl Strategy<Value = Method> {
    prop::sample::select(vec!["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "ODD"])
        .prop_map(|name| name.parse().expect("method"))
}

proptest! {
    /// The hub reviews the verb on the member's proxy. The member never carries out more than that:
    /// the tests against real control planes compare its rules with those of Kubernetes.
    #[test]
    fn what_is_executed_is_what_was_reviewed(
        method in any_method(),
        path in prop_oneof![plain_path(), "/[ -~]*".prop_map(|path| path.replace('?', ""))],
        query in prop::option::of(prop_oneof![Just("watch=true"), Just("follow=true"), Just("watch=1&follow=1"), Just("x")]),
        which in any::<u64>(),
        upgrade in any::<bool>(),
    ) {
        let path = encoded(&path, which);
        let asks = MemberRequest::read(&method, &path, query, upgrade);
        let reviewed = asks.reviewed_verb(Verb::Create);
        let executed = MemberRequest::read(&method, &path, query, false).attributes();
        match *method.as_str().as_bytes() {
            [b'G', b'E', b'T'] | [b'H', ..] => {
                let reads = matches!(&executed, Attributes::Resource(it) if it.verb == Verb::Watch) && asks.is_endless();
                let expected = if upgrade && !reads { Verb::Create } else { Verb::Get };
                prop_assert_eq!(reviewed, expected);
            }
            // Whatever the headers contain, a DELETE needs the permission to delete.
            _ => prop_assert_eq!(reviewed, request_info::verb(&method)),
        }
        prop_assert!(upgrade || !asks.connects());
        prop_assert!(!asks.connects() || !asks.is_watch(), "a watch reads, and connects to nothing");
    }

    #[test]
    fn every_spelling_of_a_path_has_one_label(
        method in any_method(), path in plain_path(), which in any::<u64>(), upgrade in any::<bool>()
    ) {
        let plain = member_attributes(&method, &path, None, upgrade);
        prop_assert_eq!(member_attributes(&method, &encoded(&path, which), None, upgrade), plain);
    }

    #[test]
    fn what_has_one_reading_is_about_the_same_however_slashes_are_joined(
        method in any_method(), path in plain_path(), turned in any::<u16>(), which in any::<u64>(), upgrade in any::<bool>()
    ) {
        // Most paths keep their slashes, so that enough of them have one reading.
        let turn = |(at, sign): (usize, char)| if sign == '/' && turned >> (at % 16) & 1 == 1 { '\\' } else { sign };
        let path: String = if turned % 4 == 0 { path.chars().enumerate().map(turn).collect() } else { path };
        let sent = encoded(&path, which);
        prop_assume!(MemberRequest::read(&method, &sent, None, upgrade).has_one_reading());
        let segments: Vec<_> = path.split(['/', '\\']).filter(|segment| !segment.is_empty()).collect();
        let joined = member_attributes(&method, &format!("/{}", segments.join("/")), None, upgrade);
        let mut reviewed = member_attributes(&method, &sent, None, upgrade);
        if let Attributes::NonResource { path, .. } = &mut reviewed {
            *path = format!("/{}", path.trim_matches('/')).into();
        }
        prop_assert_eq!(reviewed, joined);
    }

    #[test]
    fn slashes_around_a_path_do_not_change_its_label(method in any_method(), path in plain_path(), upgrade in any::<bool>()) {
        let label = |path: String| member_attributes(&method, &path, None, upgrade);
        let (plain, more) = (label(format!("/{}", path.trim_matches('/'))), label(format!("//{path}//")));
        let paths = |one: &Attributes| matches!(one, Attributes::NonResource { .. });
        // The review of a non-resource path contains the path, so it stays as it is.
        prop_assert!(plain == more || (paths(&plain) && paths(&more)), "{plain:?} {more:?}");
    }

    #[test]
    fn any_request_has_a_label(
        method in any_method(), path in ".*", query in prop::option::of(".*"), upgrade in any::<bool>()
    ) {
        let attributes = member_attributes(&method, &path, query.as_deref(), upgrade);
        if let Attributes::Resource(resource) = attributes {
            // The parts that decide a review are only split at slashes.
            for part in [&*resource.group, &*resource.version, &*resource.resource, &*resource.subresource] {
                prop_assert!(!part.contains('/'));
            }
        }
    }
}
