//! Any path and query on the port of Open Cluster Management's user server: it is for a member, or
//! not found, and paths that are the gateway's elsewhere begin with a cluster's name here.
//!
//! Input: as [`crate::spelling::Asked`].

use api::route::{Dialect, Route, Served};

use crate::spelling::Asked;

pub const WORDS: &[&str] = &[
    "/c1",
    "/",
    "//",
    "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c1/proxy",
    "/clusters/c1",
    "/healthz",
    "/metrics",
    "/api/v1/namespaces/ns/services/s",
    "/proxy-service/",
    "/proxy%2Dservice",
    "/proxy/",
    "https:s:443",
    "a.b",
    ".",
    "..",
    "%2F",
    "%2e",
    "\\",
    ":",
    "?",
    "watch=1",
    "A",
];

pub fn check(input: &[u8]) {
    let Some(asked) = Asked::of(input) else { return };
    if let Some(route) = asked.check(Served::UserServer, Dialect::UserServer) {
        assert_eq!(route.prefix, format!("/{}", route.cluster));
        assert!(!route.asks.is_of_a_workload());
    }
    let route = asked.parsed(Served::UserServer).route;
    assert!(
        matches!(
            route,
            Route::Proxy(_)
                | Route::NoMember(_)
                | Route::BadRequest(_)
                | Route::MethodNotAllowed
                | Route::WorkloadService
        ),
        "{route:?}"
    );
}
