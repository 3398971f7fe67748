//! What every request may use: immutable after start-up, shared by all cores.

use std::sync::Arc;

use auth::{Authenticator, Authorizer};
use net::drain::Drain;
use telemetry::logs::LogLevel;
use telemetry::metrics::Metrics as Exposition;
use telemetry::readiness::Readiness;
use tokio::runtime::Handle;

use crate::clusters::Clusters;
use crate::metrics::{ClusterMetrics, Metrics};
use crate::settings::Settings;

pub struct Shared {
    pub authenticator: Arc<Authenticator>,
    pub authorizer: Arc<Authorizer>,
    pub clusters: Arc<Clusters>,
    pub readiness: Readiness,
    pub drain: Drain,
    pub metrics: Metrics,
    /// Series of requests that concern no registered cluster.
    pub own_metrics: Arc<ClusterMetrics>,
    pub exposition: Exposition,
    /// Absent when somebody else set up the process's logs.
    pub log_level: Option<LogLevel>,
    /// The runtime of everything that is not a request.
    pub control: Handle,
    pub settings: Settings,
}
