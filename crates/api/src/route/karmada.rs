//! Karmada's group if we serve it: its `clusters` and its discovery. Beside a Karmada: the requests
//! for the server that served the group before.

use http::Method;

use super::{
    BadPath, BesideRoute, ClustersRoute, Discovery, KarmadaMode, KarmadaRoute, MemberRequest, OpenApi, RawRequest,
    Route, Served, SharedDocument, read,
};
use crate::access::{Attributes, Verb};
use crate::cluster_name::ClusterName;
use crate::karmada_cluster::change::Part;
use crate::path::has_dot_segment;
use crate::query;

/// A gateway that does not serve the group refuses this path earlier (`dialect::read`).
const COLLECTION: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";
const OPEN_API: &str = "/openapi/v3/apis/cluster.karmada.io/v1alpha1";
const STATUS: &str = "/status";

/// The paths of Karmada's aggregated API server, with all paths below. Hubs read OpenAPI version 2
/// from each server of a group, and we have none.
const OF_UPSTREAM: [&str; 3] = ["/apis/cluster.karmada.io", "/openapi/v3/apis/cluster.karmada.io", "/openapi/v2"];

/// The route of a request where the group is served. Otherwise `found`.
pub(super) fn among<'a>(found: Route<'a>, asked: RawRequest<'a>, attributes: &Attributes) -> Route<'a> {
    let Served::Gateway(dialects) = asked.served else { return found };
    match dialects.karmada {
        KarmadaMode::Off => found,
        KarmadaMode::Standalone => standalone(found, asked, attributes),
        KarmadaMode::Beside => beside(found, asked),
    }
}

fn standalone<'a>(found: Route<'a>, asked: RawRequest<'_>, attributes: &Attributes) -> Route<'a> {
    match found {
        Route::Discovery(Discovery::Groups) => Route::Discovery(Discovery::AllGroups),
        Route::OpenApi(OpenApi::Root) => Route::OpenApi(OpenApi::WholeRoot),
        Route::NotFound => match asked.path.strip_prefix(COLLECTION) {
            Some(rest) => clusters(asked.method, rest, attributes),
            None if asked.path.strip_suffix('/').unwrap_or(asked.path) == OPEN_API => {
                Route::OpenApi(OpenApi::KarmadaDocument)
            }
            None => Route::NotFound,
        },
        found => found,
    }
}

fn beside<'a>(found: Route<'a>, asked: RawRequest<'a>) -> Route<'a> {
    let RawRequest { method, path, query, upgrade, .. } = asked;
    match found {
        Route::Discovery(Discovery::Groups) => Route::Beside(BesideRoute::Shared(SharedDocument::Groups)),
        Route::OpenApi(OpenApi::Root) => Route::Beside(BesideRoute::Shared(SharedDocument::OpenApiRoot)),
        found if !is_of_upstream(path) => found,
        _ if has_dot_segment(path) => Route::BadRequest(BadPath::DotSegment),
        // We review the raw path, but that server decodes it before its own review. It could be
        // another path there, even the path of a member.
        _ if path.contains('%') => Route::NotFound,
        _ if path.contains('\\') || path.contains("//") => Route::BadRequest(BadPath::Slashes),
        _ if query.is_some_and(query::has_too_many_parameters) => Route::BadRequest(BadPath::Parameters),
        _ => {
            let asks = MemberRequest::read(method, path, query, upgrade.is_some());
            if asks.reviewed_verb(Verb::Get) == Verb::None && method != Method::OPTIONS {
                return Route::MethodNotAllowed;
            }
            let description = description(&found, method);
            Route::Beside(BesideRoute::Forwarded { asks, description })
        }
    }
}

fn description(found: &Route<'_>, method: &Method) -> Option<Discovery> {
    match found {
        Route::Discovery(document) if matches!(*method, Method::GET | Method::HEAD) => Some(*document),
        _ => None,
    }
}

/// Whether a path belongs to Karmada's aggregated API server and does not lead to a member.
pub fn is_no_members(path: &str) -> bool {
    let is_plain = !path.contains(['%', '\\']) && !path.contains("//");
    is_plain && is_of_upstream(path) && path.split('/').all(|segment| segment != "proxy")
}

fn is_of_upstream(path: &str) -> bool {
    let rests = OF_UPSTREAM.iter().filter_map(|whole| path.strip_prefix(whole));
    rests.into_iter().any(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// `rest` is the path after the collection's.
fn clusters(method: &Method, rest: &str, attributes: &Attributes) -> Route<'static> {
    // A hub reads `a//status` as `a`, and reviews that.
    if rest.contains("//") {
        return Route::NotFound;
    }
    let whole = rest.strip_suffix('/').unwrap_or(rest);
    let (object, part) = match whole.strip_suffix(STATUS) {
        Some(object) if object.len() > 1 => (object, Part::Status),
        _ => (whole, Part::Whole),
    };
    let read = |path| read(path, attributes, |route| Route::Karmada(KarmadaRoute::Read(route)));
    let name = match read(object) {
        Route::Karmada(KarmadaRoute::Read(ClustersRoute::Get(name))) => Some(name),
        Route::Karmada(_) => None,
        other => return other,
    };
    match (method, name) {
        (&Method::GET | &Method::HEAD, _) => read(object),
        (&Method::POST, None) => Route::Karmada(KarmadaRoute::Create),
        (_, Some(name)) => change(method, name, part),
        (_, None) => Route::MethodNotAllowed,
    }
}

fn change(method: &Method, cluster: ClusterName, part: Part) -> Route<'static> {
    let is_patch = *method == Method::PATCH;
    match *method {
        Method::PUT | Method::PATCH => Route::Karmada(KarmadaRoute::Change { cluster, part, is_patch }),
        Method::DELETE if part == Part::Whole => Route::Karmada(KarmadaRoute::Delete(cluster)),
        _ => Route::MethodNotAllowed,
    }
}

#[cfg(test)]
mod tests;
