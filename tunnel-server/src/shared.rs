//! What the parts of one tunnel-server have in common.

use std::sync::Arc;
use std::time::Duration;

use net::drain::Drain;
use net::throttle::LogThrottle;
use telemetry::certificates::Certificates;
use telemetry::readiness::Readiness;
use tunnel::{Budget, ClusterName, Settings};

use crate::metrics::Metrics;
use links::Limits;
use links::Registry;

/// Each connection has one of these.
pub type Shared = Arc<Common>;

/// See the module's text.
pub struct Common {
    pub registry: Arc<Registry>,
    pub readiness: Readiness,
    /// Of frontends and their streams: soft means GOAWAY and no new connections, hard that what is
    /// left is reset. What must be waited for holds a guard of it.
    pub drain: Drain,
    /// Of frontends and relayed streams; the registry and the agents' listener count by themselves.
    pub metrics: Metrics,
    /// Whatever is shown to peers is added to it.
    pub certificates: Certificates,
    /// All metrics as text.
    pub exposition: Arc<telemetry::metrics::Metrics>,
    /// Lines of the log about refused streams; make it by `default()`.
    pub refusals: LogThrottle,
    /// Bytes held by all streams together.
    pub budget: Budget,
    /// The registry enforces those of clusters, links, dials and all streams together (its refusals
    /// say so); the frontends their own.
    pub limits: Limits,
    pub settings: Settings,
    pub dial_timeout: Duration,
    /// The cluster meant by who names none.
    pub default_cluster: Option<ClusterName>,
}
