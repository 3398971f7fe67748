//! The only parse of a request's path: what to review, and what to do.
//!
//! Both results come from the same bytes, because a request dispatched under another label than it
//! was reviewed under is an authorization bypass. The parse never fails. A path that is not served
//! is a [`Route`] too, so that a caller only learns this after authentication and authorization.
//! Only [`Route::NoMember`] is an exception. Nothing here decodes, cleans or collapses: in each
//! dialect, a path has exactly one valid spelling.

mod dialect;
mod every;
mod karmada;
mod member_request;
mod paths;
mod request_info;

use std::borrow::Cow;

use http::Method;

use self::paths::{document, read, subresource};
use crate::access::{Attributes, ResourceAttributes, Verb};
use crate::cluster_name::ClusterName;
use crate::karmada_cluster::change::Part;
use crate::path::has_dot_segment;
use crate::query;

pub use self::dialect::{Dialect, Dialects, KarmadaMode, NoMember, Served};
use self::dialect::{Member, Reading};
pub use self::karmada::is_no_members;
pub use self::member_request::MemberRequest;

/// What a request asks for, and what its sender must be allowed to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed<'a> {
    pub route: Route<'a>,
    pub attributes: Attributes,
}

/// The input of the parse: a request as received, with path and query still percent-encoded.
#[derive(Debug, Clone, Copy)]
pub struct RawRequest<'a> {
    pub method: &'a Method,
    pub path: &'a str,
    pub query: Option<&'a str>,
    /// The verb of a read on a member that opens a stream into something. `None` if the request
    /// does not ask to switch protocols.
    pub upgrade: Option<Verb>,
    /// What its port serves.
    pub served: Served,
}

/// Where a request goes after authorization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route<'a> {
    Proxy(ProxyRoute<'a>),
    /// `/apis/cluster.karmada.io/v1alpha1/clusters/*/proxy/…`
    Every(EveryRoute<'a>),
    /// In the form of a dialect, but without a member: refused before authentication.
    NoMember(NoMember),
    /// `…/services/<service>/proxy-service/…` of Open Cluster Management's user server: a workload
    /// behind a member's API server, which the gateway does not reach.
    WorkloadService,
    Clusters(ClustersRoute),
    Health {
        cluster: ClusterName,
        action: HealthAction,
    },
    /// `/apis/cluster.core.oam.dev/v1alpha1/clustergateways/<cluster>/traffic`.
    Traffic(ClusterName),
    VirtualClusters(ClustersRoute),
    /// `/apis/cluster.karmada.io/v1alpha1/clusters`, where it is served.
    Karmada(KarmadaRoute),
    /// Karmada's group beside a Karmada, which still serves it.
    Beside(BesideRoute<'a>),
    Discovery(Discovery),
    OpenApi(OpenApi),
    /// `/healthz`, `/livez` or `/readyz`, exactly: these may be open to everyone.
    Probe(Probe),
    /// One named check below a probe, such as `/readyz/hub`: never open to everyone.
    ProbeCheck(ProbeCheck),
    Version,
    Metrics,
    /// `PUT /debug/flags/v`, the verbosity switch of Kubernetes components
    /// (`k8s.io/apiserver/pkg/server/routes/flags.go`).
    LogLevel,
    NotFound,
    MethodNotAllowed,
    BadRequest(BadPath),
}

/// A request for a member, in any [`Dialect`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyRoute<'a> {
    pub cluster: ClusterName,
    /// The member's view of the request.
    pub asks: MemberRequest<'a>,
    /// The path up to the member's part. The rest is empty or starts with `/`, and is forwarded
    /// unchanged.
    pub prefix: &'a str,
    /// For metrics and the audit log, which distinguish the dialects.
    pub dialect: Dialect,
}

/// A read from all members at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EveryRoute<'a> {
    /// The request to each member: a GET of one object, or a list, but no watch.
    pub asks: MemberRequest<'a>,
    /// The path up to the members' part.
    pub prefix: &'a str,
    /// Whether it has no name, so that the members' lists are merged.
    pub is_list: bool,
}

/// A read of the `clustergateways` or `virtualclusters` resource.
///
/// A GET of one object is a `Get` whatever its query contains: Kubernetes reads `watch=true` only
/// on collections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClustersRoute {
    List,
    Watch,
    Get(ClusterName),
}

/// A request for Karmada's `clusters`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KarmadaRoute {
    /// For one object, `status` returns the same document.
    Read(ClustersRoute),
    Create,
    Change {
        cluster: ClusterName,
        part: Part,
        /// Whether the body is a patch. Otherwise it is a whole object.
        is_patch: bool,
    },
    Delete(ClusterName),
}

/// A request for Karmada's group on a gateway beside a Karmada.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BesideRoute<'a> {
    /// Goes unchanged to the server that served the group before.
    Forwarded {
        asks: MemberRequest<'a>,
        /// The document that is read, if it is one by which a hub decides whether the group is
        /// served.
        description: Option<Discovery>,
    },
    Shared(SharedDocument),
}

/// A document shared with that server: our part describes our groups, its part Karmada's group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedDocument {
    /// `/apis`
    Groups,
    /// `/openapi/v3`
    OpenApiRoot,
}

/// A request for `/apis/cluster.core.oam.dev/v1alpha1/clustergateways/<cluster>/health`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthAction {
    Get,
    Update,
    Patch,
}

/// A discovery document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discovery {
    /// `/apis`
    Groups,
    /// `/apis`, if Karmada's group is also served.
    AllGroups,
    /// `/apis/cluster.core.oam.dev`
    Group,
    /// `/apis/cluster.core.oam.dev/v1alpha1`
    Version,
    /// `/apis/cluster.karmada.io`, if it is served.
    KarmadaGroup,
    /// `/apis/cluster.karmada.io/v1alpha1`, if it is served.
    KarmadaVersion,
}

/// An OpenAPI v3 document. We do not serve version 2: a hub stops asking for it after the 404.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenApi {
    /// `/openapi/v3`, the list of documents.
    Root,
    /// The same, if Karmada's group is also served.
    WholeRoot,
    /// `/openapi/v3/apis/cluster.core.oam.dev/v1alpha1`
    Document,
    /// `/openapi/v3/apis/cluster.karmada.io/v1alpha1`, if it is served.
    KarmadaDocument,
}

/// A health endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    Healthz,
    Livez,
    Readyz,
}

/// `/<probe>/<check>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeCheck {
    pub probe: Probe,
    /// As it was sent. Never empty.
    pub check: Box<str>,
}

/// Why a path, or its query, is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    #[error("the proxied path must not contain '.' or '..' segments, encoded or not")]
    DotSegment,
    /// Only refused if the path is reviewed, see [`MemberRequest::can_be_decoded`].
    #[error("the proxied path must not contain a '%' without two hexadecimal digits after it")]
    Escape,
    /// Only refused if the path is reviewed, see [`MemberRequest::has_one_reading`].
    #[error(
        "the proxied path must not contain '\\' or, except at its ends, '//', encoded or not: a proxy in front of the member \
         may turn it into another path; separate segments by one '/'"
    )]
    Slashes,
    /// See [`query::MOST_PARAMETERS`].
    #[error("the query must not have more than {} parameters", query::MOST_PARAMETERS)]
    Parameters,
}

const COLLECTION: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways";
const VIRTUAL: &str = "/apis/cluster.core.oam.dev/v1alpha1/virtualclusters";
const RESOURCE: &str = "clustergateways";
const PROXY: &str = "proxy";
const HEALTH: &str = "health";
const TRAFFIC: &str = "traffic";
const VIRTUAL_CLUSTERS: &str = "virtualclusters";

/// Parses a request. Never fails. Allocates nothing on the proxy path except the cluster's name,
/// unless that path contains a percent escape.
///
/// The attributes follow Kubernetes' request-info rules. A `HEAD` of a resource is a `get`. Of any
/// other path it is a `head`.
pub fn parse(asked: RawRequest<'_>) -> Parsed<'_> {
    match dialect::read(asked.path, asked.served) {
        Reading::Member(member) => proxied(asked, member),
        Reading::Every(prefix) => every::parsed(asked, prefix),
        Reading::NoMember(why) => {
            let attributes = request_info::attributes(asked.method, asked.path, asked.query);
            Parsed { route: Route::NoMember(why), attributes }
        }
        Reading::Other => own(asked),
    }
}

/// Routes of requests that the gateway answers itself.
fn own(asked: RawRequest<'_>) -> Parsed<'_> {
    let RawRequest { method, path, query, .. } = asked;
    let attributes = request_info::attributes(method, path, query);
    let route = if let Some(rest) = path.strip_prefix(COLLECTION) {
        subresource(method, rest).unwrap_or_else(|| read(rest, &attributes, Route::Clusters))
    } else if let Some(rest) = path.strip_prefix(VIRTUAL) {
        read(rest, &attributes, Route::VirtualClusters)
    } else {
        karmada::among(document(path), asked, &attributes)
    };
    let allowed = match route {
        Route::NotFound
        | Route::MethodNotAllowed
        | Route::Health { .. }
        | Route::Karmada(_)
        | Route::Beside(BesideRoute::Forwarded { .. }) => true,
        Route::LogLevel => *method == Method::PUT,
        _ => matches!(*method, Method::GET | Method::HEAD),
    };
    Parsed { route: if allowed { route } else { Route::MethodNotAllowed }, attributes }
}

fn proxied<'a>(asked: RawRequest<'a>, member: Member<'a>) -> Parsed<'a> {
    let RawRequest { method, path, query, upgrade, .. } = asked;
    let Member { dialect, cluster, prefix } = member;
    let remainder = &path[prefix.len()..];
    let asks = MemberRequest::read(method, remainder, query, upgrade.is_some());
    let verb = asks.reviewed_verb(upgrade.unwrap_or(Verb::Get));
    let (group, version, resource) = dialect.reviewed();
    let attributes = Attributes::Resource(ResourceAttributes {
        verb,
        group: Cow::Borrowed(group),
        version: Cow::Borrowed(version),
        resource: Cow::Borrowed(resource),
        subresource: Cow::Borrowed(PROXY),
        namespace: None,
        name: Some(cluster.shared()),
        field_selector: None,
        label_selector: None,
    });
    let route = if verb == Verb::None && method != Method::OPTIONS {
        Route::MethodNotAllowed
    } else if has_dot_segment(remainder) {
        Route::BadRequest(BadPath::DotSegment)
    } else if query.is_some_and(query::has_too_many_parameters) {
        Route::BadRequest(BadPath::Parameters)
    } else if dialect == Dialect::UserServer && asks.is_of_a_workload() {
        Route::WorkloadService
    } else {
        Route::Proxy(ProxyRoute { cluster, asks, prefix, dialect })
    };
    Parsed { route, attributes }
}

// === impl RawRequest ===

impl<'a> RawRequest<'a> {
    /// A request that does not ask to switch protocols, on a port with all dialects off.
    pub fn new(method: &'a Method, path: &'a str, query: Option<&'a str>) -> Self {
        Self { method, path, query, upgrade: None, served: Served::default() }
    }
}

#[cfg(test)]
mod tests;
