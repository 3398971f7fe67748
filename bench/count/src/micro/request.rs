//! Operations on heads of requests.

use std::hint::black_box;

use api::cluster_name::ClusterName;
use api::route::{self, Dialects, KarmadaMode, RawRequest, Route, Served};
use api::secret::Endpoint;
use gateway::bench::{Phases, Tracing};
use http::header::{AUTHORIZATION, CONTENT_TYPE, DATE, HeaderName};
use http::{HeaderMap, HeaderValue, Method, Uri};

use super::Operation;

pub const PATH: &str = concat!(
    "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/berlin/proxy",
    "/api/v1/namespaces/default/pods?labelSelector=app%3Dweb&limit=500"
);

const KCP_PATH: &str = concat!("/clusters/berlin", "/api/v1/namespaces/default/pods?labelSelector=app%3Dweb&limit=500");
const USER_SERVER_PATH: &str = concat!("/berlin", "/api/v1/namespaces/default/pods?labelSelector=app%3Dweb&limit=500");
const KARMADA_PATH: &str = concat!(
    "/apis/cluster.karmada.io/v1alpha1/clusters/berlin/proxy",
    "/api/v1/namespaces/default/pods?labelSelector=app%3Dweb&limit=500"
);
/// All dialects that the gateway's own port has.
const EVERYTHING: Served = Served::Gateway(Dialects { kcp: true, karmada: KarmadaMode::Standalone });

/// Headers as the hub's aggregator passes them on, without the identity.
const FROM_CLIENT: [(&str, &str); 7] = [
    ("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
    ("accept-encoding", "gzip"),
    ("user-agent", "kubectl/v1.33.1 (linux/amd64) kubernetes/8adc0f0"),
    ("kubectl-command", "kubectl get"),
    ("x-forwarded-for", "192.0.2.7"),
    ("x-forwarded-host", "cluster-gateway.vela-system.svc"),
    (
        "x-forwarded-uri",
        "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/berlin/proxy/api/v1/namespaces/default/pods",
    ),
];
/// Headers of a kube-apiserver's answer.
const FROM_MEMBER: [(&str, &str); 7] = [
    ("audit-id", "2f3c5a1e-5f0c-4a53-9d2e-0d7e3c1b9a60"),
    ("cache-control", "no-cache, private"),
    ("x-kubernetes-pf-flowschema-uid", "6a0e7a27-95a6-4b0c-a0bb-c1a1e6d04f0e"),
    ("x-kubernetes-pf-prioritylevel-uid", "0d6ba0c4-3d1a-4f3d-8f1b-5c6b9d2f7a11"),
    ("content-length", "1024"),
    ("vary", "Accept-Encoding, Accept"),
    ("x-content-type-options", "nosniff"),
];

pub fn route() -> Operation {
    parsed("route", "path parsed into route and access attributes", PATH, Served::default())
}

/// The same path where everything is served.
pub fn route_among_dialects() -> Operation {
    parsed("route-dialects", "the same path, with all dialects on", PATH, EVERYTHING)
}

pub fn route_kcp() -> Operation {
    parsed("route-kcp", "the same member's path in kcp's spelling", KCP_PATH, EVERYTHING)
}

pub fn route_user_server() -> Operation {
    let what = "the same member's path in the spelling of the user server";
    parsed("route-user-server", what, USER_SERVER_PATH, Served::UserServer)
}

pub fn route_karmada() -> Operation {
    parsed("route-karmada", "the same member's path in Karmada's spelling", KARMADA_PATH, EVERYTHING)
}

fn parsed(name: &'static str, what: &'static str, path: &str, served: Served) -> Operation {
    let uri: Uri = path.parse().expect("a URI");
    assert!(matches!(parse(&uri, served).route, Route::Proxy(_)), "{path}: no member's");
    let once = move || {
        black_box(parse(&uri, served));
    };
    Operation::new(name, what, once)
}

fn parse(uri: &Uri, served: Served) -> route::Parsed<'_> {
    route::parse(RawRequest { served, ..RawRequest::new(&Method::GET, black_box(uri.path()), uri.query()) })
}

/// URI, headers and credential; copying the client's headers for it is in the figure.
pub fn rewrite() -> Operation {
    let uri: Uri = PATH.parse().expect("a URI");
    let endpoint = Endpoint::parse("https://10.0.0.7:6443", false).expect("an endpoint");
    let remainder = uri.path().find("/api/v1").expect("the member's part");
    let head = headers(&FROM_CLIENT);
    let (client, credential) = (HeaderValue::from_static("10.1.2.3"), HeaderValue::from_static("Bearer member-token"));
    let once = move || {
        let mut head = black_box(&head).clone();
        let target = gateway::bench::to_member(&endpoint, &uri, remainder, &mut head, &client, &credential);
        black_box((target.expect("it may pass"), head));
    };
    Operation::new("rewrite", "head made fit for the member: URI, headers, credential", once)
}

pub fn answer() -> Operation {
    let mut head = headers(&FROM_MEMBER);
    head.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    head.insert(DATE, HeaderValue::from_static("Sun, 22 Nov 2026 10:00:00 GMT"));
    let once = move || {
        let mut head = black_box(&head).clone();
        gateway::bench::to_client(&mut head);
        black_box(head);
    };
    Operation::new("answer", "answer's headers made fit for the client", once)
}

pub fn status() -> Operation {
    let cluster = ClusterName::parse("nowhere").expect("a name");
    let once = move || {
        black_box(gateway::bench::no_such_cluster(black_box(&cluster)));
    };
    Operation::new("status", "refusal with its metav1.Status", once)
}

/// The cost of traces for a request where they are off, which is the default.
pub fn untraced() -> Operation {
    let mut phases = Phases::new();
    Operation::new("untraced", "phases of a request that is not traced", move || phases.run(black_box(None)))
}

/// The same with all its spans.
pub fn traced() -> Operation {
    let mut phases = Phases::new();
    let tracing = Tracing::start().expect("traces");
    let first = tracing.begin().expect("everything is recorded");
    let once = move || {
        phases.run(black_box(Some(first.trace())));
        black_box(&tracing);
    };
    Operation::new("traced", "the same phases of one that is traced", once)
}

/// A client's, with `token` as its bearer token.
pub fn with_token(token: &str) -> HeaderMap {
    let mut head = headers(&FROM_CLIENT);
    head.insert(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {token}")).expect("a header"));
    head
}

/// A client's headers, with the identity that the hub's aggregator adds.
pub fn with_identity(user: &str, groups: usize) -> HeaderMap {
    let mut head = headers(&FROM_CLIENT);
    head.insert("x-remote-user", HeaderValue::from_str(user).expect("a header"));
    for group in 0..groups {
        let value = HeaderValue::from_str(&format!("engineering:team-{group}")).expect("a header");
        head.append("x-remote-group", value);
    }
    head
}

fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    lines.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
}
