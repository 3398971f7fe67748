//! The floors: who may stand on whom.

/// Crates from the top down, a line a floor. A crate stands on crates of lower floors only, its
/// tests too.
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

/// Arrows between crates that [`CRATES`] forbids: from, to, why they are there.
pub const CRATE_EXCEPTIONS: &[(&str, &str, &str)] = &[];

/// Crates whose top-level modules may still point up or in circles.
pub const EXEMPT: &[&str] = &[];

/// The order of one crate's top-level modules.
#[derive(Debug)]
pub struct Rooms {
    /// As Cargo names the package.
    pub package: &'static str,
    /// From the top down, a line a floor. Modules of one floor do not know each other. A module
    /// that is not named may stand anywhere, but nobody reaches up through it.
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
        &["upstream"],
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
