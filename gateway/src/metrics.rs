//! The gateway's metrics. Handles are resolved once per cluster; a request only adds to them.

mod clusters;
mod connections;
mod counting;
mod credential;
mod families;
mod held;
mod labels;
mod ledger;
mod life;
pub mod proxied;
pub mod recent;
mod traffic;
mod tunnel;
mod tunnel_open;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime};

use api::route::Dialect;
use api::side::Side;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use telemetry::histogram::Histogram;
pub use telemetry::metrics::InFlight;

pub use self::clusters::{CircuitGauge, SecondLooks};
pub use self::connections::{ConnectionLimit, EndedConnections};
use self::families::Families;
pub use self::held::HeldBytes;
use self::labels::DialectLabel;
pub use self::labels::HttpMethod;
use self::ledger::Ledger;
use self::life::Life;
use self::proxied::{OfCluster, Proxied};
use self::recent::Recent;
pub use self::tunnel::TunnelMetrics;
use self::tunnel_open::LastTunnelOpen;
pub use self::tunnel_open::{TunnelHop, TunnelOpen};

/// In seconds. From a cached discovery response to the 60 s that an API server allows ordinary
/// requests.
const DURATION_BUCKETS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];

/// Most pairs of verb and code with their own series, for one cluster in one dialect. Further codes
/// count as their class.
const MOST_OUTCOMES: usize = 100;
/// Room for the classes of all verbs, in addition.
const CLASSES: usize = 80;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ClusterLabels {
    cluster: Arc<str>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    cluster: Arc<str>,
    verb: &'static str,
    code: u16,
    #[prometheus(flatten)]
    dialect: DialectLabel,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct DialErrorLabels {
    cluster: Arc<str>,
    kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SideLabels {
    side: &'static str,
}

/// All series. Cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    families: Families,
    ended_connections: EndedConnections,
    /// The series of registered clusters.
    clusters: Arc<Mutex<HashMap<Arc<str>, Registered>>>,
}

/// The series of a cluster, and their owner.
struct Registered {
    /// The UID of the object that registers the cluster.
    owner: Box<str>,
    metrics: Arc<ClusterMetrics>,
}

/// The series of one cluster, until [`Metrics::forget`] removes them. Requests that are open then
/// continue to count here, where no scrape reads it.
pub struct ClusterMetrics {
    labels: ClusterLabels,
    families: Families,
    life: Arc<Life>,
    duration: Histogram,
    in_flight: Gauge,
    upgrades: Gauge,
    upgrade_bytes: Counter,
    connections: Gauge,
    circuit: Gauge,
    newest_circuit: Arc<AtomicU64>,
    proxied: Option<OfCluster>,
    /// Ordered as [`Dialect::ALL`]. One ledger each, so that a search takes no longer because of
    /// other dialects.
    by_outcome: [Ledger<(HttpMethod, u16), Counter>; Dialect::ALL.len()],
    by_dial_error: Mutex<HashMap<&'static str, Counter>>,
    since: SystemTime,
    streams: Gauge,
    /// Ordered as [`Side::ALL`].
    by_side: [AtomicU64; Side::ALL.len()],
    recent: Recent,
    tunnel_open: LastTunnelOpen,
}

// === impl Metrics ===

impl Metrics {
    /// Registers all families, their names prefixed `cluster_gateway_`.
    pub fn register(registry: &mut Registry) -> Self {
        let families = Families {
            requests: Family::default(),
            duration: Family::new_with_constructor(|| Histogram::new(&DURATION_BUCKETS)),
            in_flight: Family::default(),
            upgrades: Family::default(),
            upgrade_bytes: Family::default(),
            connections: Family::default(),
            dial_errors: Family::default(),
            circuits: Family::default(),
            tunnelled: Family::default(),
            credential: credential::Families::default(),
            clusters: Family::default(),
            client_connections: Gauge::default(),
            tls_failures: Counter::default(),
            failures: Family::default(),
            cut_responses: Family::default(),
            proxied: None,
        };
        families.announce(registry);
        families.credential.announce(registry);
        Self { families, ended_connections: EndedConnections::register(registry), clusters: Arc::default() }
    }

    /// Registers the Go cluster-gateway's families too, for clusters added from now on.
    #[must_use]
    pub fn with_proxied(mut self, registry: &mut Registry) -> Self {
        self.families.proxied = Some(Proxied::register(registry));
        self
    }

    /// The series for this name of the cluster that the object with the UID `owner` registers.
    /// Forgets another owner's. `None` means the current owner, when the UID cannot be read.
    pub fn for_cluster(&self, cluster: Arc<str>, owner: Option<&str>) -> Arc<ClusterMetrics> {
        let mut clusters = self.clusters.lock();
        if let Some(known) = clusters.get(&cluster) {
            if owner.is_none_or(|owner| owner == &*known.owner) {
                return Arc::clone(&known.metrics);
            }
            // Before the new ones are made, because both have the same names.
            known.metrics.remove();
        }
        let metrics = self.families.series(ClusterLabels { cluster: Arc::clone(&cluster) });
        let registered = Registered { owner: owner.unwrap_or_default().into(), metrics: Arc::clone(&metrics) };
        clusters.insert(cluster, registered);
        metrics
    }

    /// Removes a cluster that is gone, with its series.
    pub fn forget(&self, cluster: &str) {
        let mut clusters = self.clusters.lock();
        if let Some(known) = clusters.remove(cluster) {
            known.metrics.remove();
        }
    }

    /// The series for requests without a registered cluster: those that the gateway answers itself,
    /// and failures before the cluster is known.
    pub fn of_none(&self) -> Arc<ClusterMetrics> {
        self.for_cluster("".into(), None)
    }

    pub fn set_clusters(&self, ready: usize, invalid: usize) {
        for (state, count) in [("ready", ready), ("invalid", invalid)] {
            self.families.clusters.get_or_create(&StateLabels { state }).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// Counts the duration of a second review, of the proxied request's own attributes; `success`
    /// if the hub answered it.
    pub fn escalation_reviewed(&self, success: bool, took: Duration) {
        if let Some(proxied) = &self.families.proxied {
            proxied.escalation_reviewed(success, took);
        }
    }

    pub fn client_connection(&self) -> InFlight {
        InFlight::new(&self.families.client_connections)
    }

    /// Counts a connection that the gateway ended.
    pub fn connection_ended(&self, limit: ConnectionLimit) {
        self.ended_connections.count(limit);
    }

    pub fn tls_failed(&self) {
        self.families.tls_failures.inc();
    }

    /// Counts a request that failed on this side: caller, hub, gateway, tunnel or member.
    pub fn failed(&self, side: &'static str) {
        self.families.failures.get_or_create(&SideLabels { side }).inc();
    }

    /// Counts a response that this side cut off after its head. Not a failure: load balancers end
    /// idle watches all the time, and their clients open new ones.
    pub fn response_cut(&self, side: &'static str) {
        self.families.cut_responses.get_or_create(&SideLabels { side }).inc();
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
