//! Karmada's group where it is served: its `clusters`, and what discovery says of it.

use http::Method;

use super::{ClustersRoute, Discovery, KarmadaRoute, OpenApi, RawRequest, Route, Served, read};
use crate::access::Attributes;
use crate::cluster_name::ClusterName;
use crate::karmada_cluster::change::Part;

/// A gateway that does not serve the group refuses this before (`dialect::read`).
const COLLECTION: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";
const OPEN_API: &str = "/openapi/v3/apis/cluster.karmada.io/v1alpha1";
const STATUS: &str = "/status";

/// `found`, or what it is where the group is served.
pub(super) fn among(found: Route<'static>, asked: RawRequest<'_>, attributes: &Attributes) -> Route<'static> {
    let is_served = || matches!(asked.served, Served::Gateway(dialects) if dialects.karmada);
    match found {
        Route::Discovery(Discovery::Groups) if is_served() => Route::Discovery(Discovery::AllGroups),
        Route::OpenApi(OpenApi::Root) if is_served() => Route::OpenApi(OpenApi::WholeRoot),
        Route::NotFound if is_served() => match asked.path.strip_prefix(COLLECTION) {
            Some(rest) => clusters(asked.method, rest, attributes),
            None if asked.path.strip_suffix('/').unwrap_or(asked.path) == OPEN_API => {
                Route::OpenApi(OpenApi::KarmadaDocument)
            }
            None => Route::NotFound,
        },
        found => found,
    }
}

/// `rest` is what follows the collection's path.
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
