//! The paths that the gateway itself serves: its API group, the clusters in it, shared documents
//! and probes.

use http::Method;

use super::{ClustersRoute, Discovery, HEALTH, HealthAction, OpenApi, Probe, ProbeCheck, Route, TRAFFIC};
use crate::access::{Attributes, ResourceAttributes, Verb};
use crate::cluster_name::ClusterName;

/// `rest` is the path after the collection's. One trailing slash is allowed, as Kubernetes does for
/// resources.
pub(super) fn read(rest: &str, attributes: &Attributes, route: fn(ClustersRoute) -> Route<'static>) -> Route<'static> {
    let Some(name) = rest.strip_prefix('/').filter(|name| !name.is_empty()) else {
        let watches = matches!(attributes, Attributes::Resource(ResourceAttributes { verb: Verb::Watch, .. }));
        return match rest {
            "" | "/" if watches => route(ClustersRoute::Watch),
            "" | "/" => route(ClustersRoute::List),
            _ => Route::NotFound,
        };
    };
    let name = ClusterName::parse(name.strip_suffix('/').unwrap_or(name));
    name.map_or(Route::NotFound, |name| route(ClustersRoute::Get(name)))
}

/// `rest` is the path after the collection's. `None` if it is not a cluster's health or traffic.
pub(super) fn subresource(method: &Method, rest: &str) -> Option<Route<'static>> {
    let (name, subresource) = rest.strip_prefix('/')?.split_once('/')?;
    let cluster = ClusterName::parse(name).ok()?;
    match subresource.strip_suffix('/').unwrap_or(subresource) {
        HEALTH => Some(health(method, cluster)),
        TRAFFIC => Some(Route::Traffic(cluster)),
        _ => None,
    }
}

fn health(method: &Method, cluster: ClusterName) -> Route<'static> {
    let action = match *method {
        Method::GET | Method::HEAD => HealthAction::Get,
        Method::PUT => HealthAction::Update,
        Method::PATCH => HealthAction::Patch,
        _ => return Route::MethodNotAllowed,
    };
    Route::Health { cluster, action }
}

pub(super) fn document(path: &str) -> Route<'static> {
    match path {
        "/version" | "/version/" => return Route::Version,
        "/metrics" => return Route::Metrics,
        "/debug/flags/v" => return Route::LogLevel,
        _ => {}
    }
    match path.strip_suffix('/').unwrap_or(path) {
        "/apis" => Route::Discovery(Discovery::Groups),
        "/apis/cluster.core.oam.dev" => Route::Discovery(Discovery::Group),
        "/apis/cluster.core.oam.dev/v1alpha1" => Route::Discovery(Discovery::Version),
        // Only reached if the group is served.
        "/apis/cluster.karmada.io" => Route::Discovery(Discovery::KarmadaGroup),
        "/apis/cluster.karmada.io/v1alpha1" => Route::Discovery(Discovery::KarmadaVersion),
        "/openapi/v3" => Route::OpenApi(OpenApi::Root),
        "/openapi/v3/apis/cluster.core.oam.dev/v1alpha1" => Route::OpenApi(OpenApi::Document),
        _ => probe(path),
    }
}

fn probe(path: &str) -> Route<'static> {
    let (name, check) = match path.strip_prefix('/').unwrap_or_default().split_once('/') {
        Some((name, check)) => (name, Some(check)),
        None => (path.strip_prefix('/').unwrap_or_default(), None),
    };
    let probe = match name {
        "healthz" => Probe::Healthz,
        "livez" => Probe::Livez,
        "readyz" => Probe::Readyz,
        _ => return Route::NotFound,
    };
    match check {
        None => Route::Probe(probe),
        Some("") => Route::NotFound,
        Some(check) => Route::ProbeCheck(ProbeCheck { probe, check: check.into() }),
    }
}
