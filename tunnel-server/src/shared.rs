//! State that the parts of one tunnel-server share.

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

/// Each connection holds a clone.
pub type Shared = Arc<Common>;

/// State that the parts of one tunnel-server share.
pub struct Common {
    pub registry: Arc<Registry>,
    pub readiness: Readiness,
    /// Drains frontends and their streams. The soft signal means GOAWAY and no new connections; the
    /// hard signal resets what is left. Work that the drain must wait for holds a guard.
    pub drain: Drain,
    /// Counters of frontends and relayed streams; the registry and the agents' listener have their
    /// own.
    pub metrics: Metrics,
    /// The certificates that peers see, for the metric of their expiry.
    pub certificates: Certificates,
    /// All metrics as text.
    pub exposition: Arc<telemetry::metrics::Metrics>,
    /// Limits the log lines about refused streams; make it by `default()`.
    pub refusals: LogThrottle,
    /// Bytes held by all streams together.
    pub budget: Budget,
    /// The registry enforces the limits of clusters, links, dials and all streams together, and its
    /// refusals name the limit. The frontends enforce their own limits.
    pub limits: Limits,
    pub settings: Settings,
    pub dial_timeout: Duration,
    /// The cluster of streams whose frontend names none.
    pub default_cluster: Option<ClusterName>,
}
