//! The reviewed request is the one that the member executes.
//!
//! A request for a member's proxy is read as it comes, forwarded as the gateway forwards it, and
//! the forwarded request is read once more, by [`request_info`]: written from `requestinfo.go` and
//! `net/url`, and independent of this project's own reading. `tests/hub` (`request_info`) compares
//! it with the real Kubernetes.
//!
//! Input: `!` if it asks to switch protocols, then a method, a blank, and the text after `…/proxy`.

mod request_info;

use api::access::{Attributes, ResourceAttributes, Verb};
use api::cluster_name::ClusterName;
use api::route::{MemberRequest, RawRequest, Route, Served, parse};
use api::secret::Endpoint;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Uri};

use self::request_info::Info;

pub const WORDS: &[&str] = &[
    "!",
    "GET ",
    "get ",
    "gEt ",
    "DELETE ",
    "POST ",
    "HEAD ",
    "OPTIONS ",
    "/api/v1",
    "/apis/apps/v1",
    "/namespaces/ns",
    "/pods",
    "/p",
    "/exec",
    "/log",
    "/status",
    "/watch",
    "/proxy",
    "/services/s",
    "/nodes/n",
    "/",
    "//",
    "%2F",
    "%2f",
    "%5C",
    "\\",
    "%2e",
    "%2E%2e",
    "..",
    ".",
    ";",
    ";x=y",
    "%25",
    "%",
    "%0",
    "%zz",
    "%00",
    "?",
    "&",
    "watch=1",
    "watch=0",
    "watch",
    "w%61tch=true",
    "follow=1",
    "fieldSelector=metadata.name%3Dp",
    "fieldSelector=metadata.name=q,a=b",
    "limit=x",
    "labelSelector=a",
    "#",
    "+",
    "é",
    "%c3%a9",
    "%ff",
    "*",
    ":",
];

const BASE: &str = "/base";
const PREFIX: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c1/proxy";

pub fn check(input: &[u8]) {
    let (upgrade, line) = input.strip_prefix(b"!").map_or((false, input), |line| (true, line));
    let Some((method, target)) = std::str::from_utf8(line).ok().and_then(|line| line.split_once(' ')) else { return };
    let Ok(method) = Method::from_bytes(method.as_bytes()) else { return };
    let cluster = ClusterName::parse("c1").expect("a name");
    // As the servers take a target: one that is no URI reaches no handler.
    let Ok(uri) = format!("{PREFIX}{target}").parse::<Uri>() else { return };
    let gained = upgrade.then_some(Verb::Create);
    let (path, query) = (uri.path(), uri.query());
    let parsed = parse(RawRequest { method: &method, path, query, upgrade: gained, served: Served::default() });
    let Route::Proxy(proxy) = parsed.route else { return };
    assert_eq!(proxy.cluster, cluster);

    let sent = forwarded(&uri, proxy.prefix.len());
    let (path, query) = sent.split_once('?').map_or((&*sent, None), |(path, query)| (path, Some(query)));
    // net/http answers 400 before anything is done.
    let Some(decoded) = request_info::decoded(path) else {
        assert!(!proxy.asks.can_be_decoded(), "a review would speak of {path}");
        return;
    };
    assert!(proxy.asks.can_be_decoded());
    // Kubernetes makes nothing of it, and serves it nowhere.
    let Some(info) = request_info::read(method.as_str(), &decoded, query) else { return };
    compare(&proxy.asks.attributes(), &info, upgrade);
    granted(&parsed.attributes, &proxy.asks, &info, &method, upgrade);
    however_joined(&proxy.asks, &info, &method, &decoded, query);
}

/// Path and query as they leave for a member behind a base path, which is taken off again there.
fn forwarded(uri: &Uri, remainder: usize) -> String {
    let endpoint = Endpoint::parse(&format!("https://member:6443{BASE}"), false).expect("an endpoint");
    let value = HeaderValue::from_static("x");
    let sent = gateway::bench::to_member(&endpoint, uri, remainder, &mut HeaderMap::new(), &value, &value);
    let sent = sent.expect("what was accepted can be forwarded");
    let text = sent.path_and_query().map_or("", PathAndQuery::as_str);
    text.strip_prefix(BASE).filter(|rest| rest.starts_with('/')).expect("below the member's base path").to_owned()
}

/// The second review, and the audit log, name the executed request.
fn compare(reviewed: &Attributes, info: &Info, upgrade: bool) {
    let Attributes::Resource(ours) = reviewed else {
        let Attributes::NonResource { path, verb } = reviewed else { return };
        assert!(!info.is_resource, "{reviewed:?} is {info:?}");
        assert_eq!((&**path, &**verb), (&*info.path, &*info.verb));
        return;
    };
    assert!(info.is_resource, "{reviewed:?} is {info:?}");
    let theirs = [&*info.group, &info.version, &info.resource, &info.subresource, &info.namespace];
    let namespace = ours.namespace.as_deref().unwrap_or_default();
    assert_eq!([&*ours.group, &ours.version, &ours.resource, &ours.subresource, namespace], theirs);
    let name = ours.name.as_deref().unwrap_or_default();
    assert!(name == info.name || info.name.is_empty() && info.may_select(name), "{reviewed:?} is {info:?}");
    let opens = info.group.is_empty()
        && info.resource == "pods"
        && matches!(&*info.subresource, "exec" | "attach" | "portforward")
        && matches!(&*info.verb, "get" | "list" | "watch");
    assert_eq!(ours.verb.as_str(), if upgrade && opens { "create" } else { &*info.verb });
    select(ours, info);
}

fn select(ours: &ResourceAttributes, info: &Info) {
    let texts = [&ours.field_selector, &ours.label_selector].map(|text| text.as_deref().unwrap_or_default());
    assert_eq!(texts, [&*info.field_selector, &info.label_selector]);
}

/// The first review, of the cluster's proxy, grants no less than what is executed, and the
/// properties derived from the reading err to the careful side.
fn granted(first: &Attributes, asks: &MemberRequest<'_>, info: &Info, method: &Method, upgrade: bool) {
    let Attributes::Resource(first) = first else { panic!("{first:?} names no cluster") };
    assert_eq!(
        (&*first.resource, &*first.subresource, first.name.as_deref()),
        ("clustergateways", "proxy", Some("c1"))
    );
    let watches = info.verb == "watch" && info.subresource.is_empty() && method == Method::GET;
    let needed = match method.as_str() {
        "GET" | "HEAD" if upgrade && !watches => "create",
        "GET" | "HEAD" => "get",
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "",
    };
    let reviewed = first.verb.as_str();
    assert!(reviewed == needed || reviewed == "create" && needed == "get", "{reviewed} for {info:?}, {needed} needed");
    if matches!(&*info.subresource, "exec" | "attach" | "portforward" | "proxy") {
        assert!(asks.may_act(), "{info:?} acts");
    }
    if info.subresource == "proxy" || info.verb == "proxy" {
        assert!(asks.is_behind_proxy(), "{info:?} is answered by a workload");
    }
    let follows = info.group.is_empty() && info.resource == "pods" && info.subresource == "log";
    assert!(!asks.is_endless() || watches || follows && method == Method::GET, "{info:?} has an end");
}

/// Where a review is about the path, a server that joins slashes in front of the member changes
/// nothing.
fn however_joined(asks: &MemberRequest<'_>, info: &Info, method: &Method, path: &str, query: Option<&str>) {
    // The rest is for the workload.
    if !asks.has_one_reading() || info.subresource == "proxy" {
        return;
    }
    let mut joined = path.replace('\\', "/");
    while joined.contains("//") {
        joined = joined.replace("//", "/");
    }
    let again = request_info::read(method.as_str(), &joined, query).expect("read before");
    assert!(again.same_object(info), "{info:?} is {again:?} once slashes are joined");
}
