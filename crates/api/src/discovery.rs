//! Discovery: the four documents that show clients what we serve.
//!
//! All of them come from one table, so they cannot disagree, and the table only lists what works.
//! An advertised verb that is not served breaks controllers (`watch`) or makes the hub's garbage
//! collector open informers on us (`delete`, `list`, `watch`). The documents are built once. The
//! hub's availability check reads them, so they must not depend on anything.

mod documents;

use std::sync::LazyLock;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use crate::accept::{self, DiscoveryForm};
use crate::route::Discovery;
use crate::{go_text, karmada};

/// A served resource and its subresources.
#[derive(Debug)]
pub struct Resource {
    pub plural: &'static str,
    pub singular: &'static str,
    pub kind: &'static str,
    pub verbs: &'static [&'static str],
    /// Names that users may write instead of the plural.
    pub short_names: &'static [&'static str],
    pub subresources: &'static [Subresource],
}

/// `<resource>/<name>`.
#[derive(Debug)]
pub struct Subresource {
    pub name: &'static str,
    pub kind: &'static str,
    pub verbs: &'static [&'static str],
}

/// The table of our group. All its resources are cluster-scoped.
pub static RESOURCES: &[Resource] = &[
    Resource {
        plural: "clustergateways",
        singular: "clustergateway",
        kind: "ClusterGateway",
        verbs: &["get", "list", "watch"],
        short_names: &[],
        subresources: &[
            Subresource { name: "health", kind: "ClusterGateway", verbs: &["get", "patch", "update"] },
            Subresource {
                name: "proxy",
                kind: "ClusterGatewayProxyOptions",
                verbs: &["create", "delete", "get", "patch", "update"],
            },
            Subresource { name: "traffic", kind: crate::traffic::KIND, verbs: &["get"] },
        ],
    },
    Resource {
        plural: "virtualclusters",
        singular: "virtualcluster",
        kind: "VirtualCluster",
        verbs: &["get", "list", "watch"],
        // The short names of the Go cluster-gateway.
        short_names: &["vc", "vcluster", "vclusters", "virtual-cluster", "virtual-clusters"],
        subresources: &[],
    },
];

/// The table of Karmada's group.
pub static KARMADA_RESOURCES: &[Resource] = &[Resource {
    plural: karmada::CLUSTERS,
    singular: "cluster",
    kind: karmada::KIND,
    verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
    short_names: &[],
    subresources: &[
        Subresource {
            name: "proxy",
            kind: "ClusterProxyOptions",
            verbs: &["create", "delete", "get", "patch", "update"],
        },
        Subresource { name: "status", kind: karmada::KIND, verbs: &["get", "patch", "update"] },
    ],
}];

/// A group with its only version.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    pub name: &'static str,
    pub version: &'static str,
    pub api_version: &'static str,
    pub resources: &'static [Resource],
}

/// Our group.
pub const OURS: Group =
    Group { name: crate::GROUP, version: crate::VERSION, api_version: crate::API_VERSION, resources: RESOURCES };
/// Karmada's group, where it is served.
pub const KARMADA: Group = Group {
    name: karmada::GROUP,
    version: karmada::VERSION,
    api_version: karmada::API_VERSION,
    resources: KARMADA_RESOURCES,
};

/// A finished document.
#[derive(Debug)]
pub struct Document {
    pub body: Bytes,
    pub content_type: HeaderValue,
    /// Strong: equal tags mean equal bytes.
    pub etag: HeaderValue,
}

struct Documents {
    groups: Document,
    aggregated: Document,
    all_groups: Document,
    all_aggregated: Document,
    group: Document,
    version: Document,
    karmada_group: Document,
    karmada_version: Document,
}

static DOCUMENTS: LazyLock<Documents> = LazyLock::new(|| {
    let json = HeaderValue::from_static("application/json");
    // Clients parse these parameters in any order, but the media type itself must be exactly this.
    let v2 = HeaderValue::from_static("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    Documents {
        groups: Document::new(go_text::json(&documents::groups(&[OURS])), json.clone()),
        aggregated: Document::new(go_text::json(&documents::aggregated(&[OURS])), v2.clone()),
        all_groups: Document::new(go_text::json(&documents::groups(&[OURS, KARMADA])), json.clone()),
        all_aggregated: Document::new(go_text::json(&documents::aggregated(&[OURS, KARMADA])), v2),
        group: Document::new(go_text::json(&documents::group(&OURS)), json.clone()),
        version: Document::new(go_text::json(&documents::version(&OURS)), json.clone()),
        karmada_group: Document::new(go_text::json(&documents::group(&KARMADA)), json.clone()),
        karmada_version: Document::new(go_text::json(&documents::version(&KARMADA)), json),
    }
});

/// The document of a discovery path, in the form that the request's headers accept.
pub fn document(path: Discovery, headers: &HeaderMap) -> &'static Document {
    match path {
        Discovery::Groups => match accept::discovery(headers) {
            DiscoveryForm::Plain => &DOCUMENTS.groups,
            DiscoveryForm::AggregatedV2 => &DOCUMENTS.aggregated,
        },
        Discovery::AllGroups => match accept::discovery(headers) {
            DiscoveryForm::Plain => &DOCUMENTS.all_groups,
            DiscoveryForm::AggregatedV2 => &DOCUMENTS.all_aggregated,
        },
        Discovery::Group => &DOCUMENTS.group,
        Discovery::Version => &DOCUMENTS.version,
        Discovery::KarmadaGroup => &DOCUMENTS.karmada_group,
        Discovery::KarmadaVersion => &DOCUMENTS.karmada_version,
    }
}

/// The complete response to a GET (for a HEAD, drop the body): 200, or 304 if `If-None-Match` names
/// the current document.
pub fn respond(path: Discovery, headers: &HeaderMap) -> Response<Bytes> {
    document(path, headers).answer(headers, HeaderValue::from_static("public"))
}

// === impl Document ===

impl Document {
    pub(crate) fn new(body: Bytes, content_type: HeaderValue) -> Self {
        let etag = format!("\"{:016X}\"", fnv1a(&body));
        let etag = HeaderValue::from_str(&etag).expect("quoted hexadecimal digits are a header value");
        Self { body, content_type, etag }
    }

    /// The response to a GET with these headers. `kept` is its Cache-Control.
    pub(crate) fn answer(&self, headers: &HeaderMap, kept: HeaderValue) -> Response<Bytes> {
        let mut response = Response::new(Bytes::new());
        let answer = response.headers_mut();
        answer.insert(ETAG, self.etag.clone());
        answer.insert(VARY, HeaderValue::from_static("Accept"));
        answer.insert(CACHE_CONTROL, kept);
        if self.is_known(headers) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else {
            answer.insert(CONTENT_TYPE, self.content_type.clone());
            *response.body_mut() = self.body.clone();
        }
        response
    }

    /// Evaluates `If-None-Match` by RFC 9110 §13.1.2: a list, `*`, and weak comparison.
    pub(crate) fn is_known(&self, headers: &HeaderMap) -> bool {
        let lines = headers.get_all(IF_NONE_MATCH).iter().filter_map(|line| line.to_str().ok());
        lines
            .flat_map(|line| line.split(','))
            .map(str::trim)
            .any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag).as_bytes() == self.etag.as_bytes())
    }
}

/// FNV-1a: the tag must change with the document and be equal on all replicas. A collision helps no
/// attacker.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use http::header::ACCEPT;

    use super::*;
    use crate::access::Attributes;

    const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

    fn headers(accept: &str, known: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().expect("header"));
        headers.extend(known.map(|tag| (IF_NONE_MATCH, tag.parse().expect("header"))));
        headers
    }

    #[test]
    fn golden_documents() {
        let text = |path, accept| {
            let body = &document(path, &headers(accept, None)).body;
            String::from_utf8(body.to_vec()).expect("JSON is UTF-8")
        };
        insta::assert_snapshot!("groups", text(Discovery::Groups, "*/*"));
        insta::assert_snapshot!("aggregated", text(Discovery::Groups, V2));
        insta::assert_snapshot!("all_groups", text(Discovery::AllGroups, "*/*"));
        insta::assert_snapshot!("all_aggregated", text(Discovery::AllGroups, V2));
        insta::assert_snapshot!("group", text(Discovery::Group, V2));
        insta::assert_snapshot!("version", text(Discovery::Version, V2));
        insta::assert_snapshot!("karmada_group", text(Discovery::KarmadaGroup, V2));
        insta::assert_snapshot!("karmada_version", text(Discovery::KarmadaVersion, V2));
    }

    /// An advertised verb that is not served would break controllers.
    #[test]
    fn every_advertised_verb_is_routed() {
        use crate::route::{Dialects, KarmadaMode, RawRequest, Route, Served, parse};
        let served = Served::Gateway(Dialects { kcp: false, karmada: KarmadaMode::Standalone });
        let all = [OURS, KARMADA].into_iter().flat_map(|group| group.resources.iter().map(move |one| (group, one)));
        for (group, resource) in all {
            let collection = format!("/apis/{}/{}", group.api_version, resource.plural);
            let subresources = resource.subresources.iter().map(|one| (format!("/c1/{}", one.name), one.verbs));
            for (tail, verbs) in std::iter::once((String::new(), resource.verbs)).chain(subresources) {
                for verb in verbs {
                    let (method, name, query) = match *verb {
                        "list" => ("GET", "", None),
                        "watch" => ("GET", "", Some("watch=true")),
                        "get" => ("GET", "/c1", None),
                        "create" => ("POST", "", None),
                        "update" => ("PUT", "/c1", None),
                        "patch" => ("PATCH", "/c1", None),
                        "delete" => ("DELETE", "/c1", None),
                        other => panic!("{other} is no verb"),
                    };
                    let path = collection.clone() + if tail.is_empty() { name } else { &tail };
                    let method = method.parse().expect("method");
                    let parsed = parse(RawRequest { served, ..RawRequest::new(&method, &path, query) });
                    assert!(!matches!(parsed.route, Route::NotFound | Route::MethodNotAllowed), "{verb} {path}");
                    let Attributes::Resource(attributes) = parsed.attributes else { panic!("{path} is a resource") };
                    assert_eq!((attributes.verb.as_str(), &*attributes.resource), (*verb, resource.plural), "{path}");
                }
            }
        }
    }

    #[test]
    fn aggregated_document_says_what_it_is() {
        let response = respond(Discovery::Groups, &headers(V2, None));
        assert_eq!(response.headers()[CONTENT_TYPE], V2);
        assert_eq!(response.headers()[VARY], "Accept");
        assert_eq!(respond(Discovery::Groups, &headers("*/*", None)).headers()[CONTENT_TYPE], "application/json");
    }

    #[test]
    fn unchanged_documents_are_not_sent_again() {
        let first = respond(Discovery::Groups, &headers(V2, None));
        let tag = first.headers()[ETAG].to_str().expect("text").to_owned();
        for known in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
            let second = respond(Discovery::Groups, &headers(V2, Some(&known)));
            assert_eq!(second.status(), StatusCode::NOT_MODIFIED, "{known}");
            assert!(second.body().is_empty());
            assert_eq!(second.headers()[ETAG], tag.as_str());
        }
        // The same path in the other form is another document.
        assert_eq!(respond(Discovery::Groups, &headers("*/*", Some(&tag))).status(), StatusCode::OK);
        assert_eq!(respond(Discovery::Groups, &headers(V2, Some("\"x\""))).status(), StatusCode::OK);
    }
}
