//! The floors: which crate may depend on which.

/// Crates from the top down, a line a floor. A crate depends on crates of lower floors only, and so
/// do its tests.
pub const CRATES: &[&[&str]] = &[
    &["demo-real", "node-tests"],
    &["tunnel-tests", "chaos-tests", "demo", "bench", "count", "fuzz"],
    &["edges"],
    &["cluster-gateway-controllers", "kubectl-clusters"],
    &["dist"],
    &["harness"],
    &["hub-tests", "system-tests"],
    &["gateway", "tunnel-server", "tunnel-agent"],
    &["audit", "fleet", "links"],
    &["auth", "delivery", "exec-credential", "hub", "register", "tunnel"],
    &["api", "placement", "telemetry", "traces"],
    &["net"],
    &["kit", "structure-tests"],
];

/// Dependencies between crates that [`CRATES`] forbids: from, to, reason.
pub const CRATE_EXCEPTIONS: &[(&str, &str, &str)] = &[];

/// Crates whose top-level modules may still point up or in circles.
pub const EXEMPT: &[&str] = &[];

/// The order of one crate's top-level modules.
#[derive(Debug)]
pub struct Rooms {
    /// Cargo's name of the package.
    pub package: &'static str,
    /// From the top down, a line a floor. Modules of one floor do not know each other. Every module
    /// has a floor.
    pub floors: &'static [&'static [&'static str]],
}

pub const ROOMS: &[Rooms] = &[Rooms {
    package: "gateway",
    floors: &[
        &["app", "args", "bench", "edges", "patch"],
        &["config", "server"],
        &["handler"],
        &["beside", "every"],
        &["proxy", "resources"],
        &["record"],
        &["audit"],
        &["request"],
        &["error"],
        &["body", "connection"],
        &["needs", "probes"],
        &["clusters"],
        &["failures", "upstream"],
        &["tunnel"],
        &["spans"],
        &["exchange", "metrics", "request_body"],
        &["limits"],
        &["inbound"],
        &["headers", "hub"],
        &["serving", "unread"],
        &["holding"],
    ],
}];
