//! What the gateway counts. Handles are resolved once per cluster; a request only adds to them.

mod circuit;
mod credential;
mod dialect;
mod held;
mod ledger;
pub mod proxied;
pub mod recent;
mod second_look;
mod traffic;
mod tunnel;
mod verb;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
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

pub use self::circuit::CircuitGauge;
use self::dialect::DialectLabel;
pub use self::held::Held;
use self::ledger::Ledger;
use self::proxied::{OfCluster, Proxied, Topic};
use self::recent::Recent;
pub use self::second_look::SecondLooks;
pub use self::tunnel::TunnelMetrics;
pub use self::verb::Verb;

/// Seconds. From a cached discovery answer to the 60 s an API server gives ordinary requests.
const DURATION_BUCKETS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];

/// Pairs of verb and code that a cluster has series for in one dialect; codes beyond are counted as
/// their class.
const MOST_OUTCOMES: usize = 100;
/// Room for the classes of all verbs beside them.
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

/// The families. Cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    requests: Family<RequestLabels, Counter>,
    duration: Family<ClusterLabels, Histogram, fn() -> Histogram>,
    in_flight: Family<ClusterLabels, Gauge>,
    upgrades: Family<ClusterLabels, Gauge>,
    upgrade_bytes: Family<ClusterLabels, Counter>,
    connections: Family<ClusterLabels, Gauge>,
    dial_errors: Family<DialErrorLabels, Counter>,
    circuits: Family<ClusterLabels, Gauge>,
    credential: credential::Families,
    clusters: Family<StateLabels, Gauge>,
    client_connections: Gauge,
    tls_failures: Counter,
    failures: Family<SideLabels, Counter>,
    /// Absent if they are not wanted.
    proxied: Option<Proxied>,
    /// The series in use, by cluster: a cluster that comes back while a request of its former self
    /// is open goes on counting there.
    live: Arc<Mutex<HashMap<Arc<str>, Weak<ClusterMetrics>>>>,
}

/// The series of one cluster; removed when the cluster is gone.
pub struct ClusterMetrics {
    labels: ClusterLabels,
    families: Metrics,
    duration: Histogram,
    in_flight: Gauge,
    upgrades: Gauge,
    upgrade_bytes: Counter,
    connections: Gauge,
    circuit: Gauge,
    newest_circuit: Arc<AtomicU64>,
    proxied: Option<OfCluster>,
    /// As [`Dialect::ALL`]: apart, so that a walk through one is as short as if there were no
    /// others.
    by_outcome: [Ledger<(Verb, u16), Counter>; Dialect::ALL.len()],
    by_dial_error: Mutex<HashMap<&'static str, Counter>>,
    since: SystemTime,
    streams: Gauge,
    /// As [`Side::ALL`].
    by_side: [AtomicU64; Side::ALL.len()],
    recent: Recent,
}

// === impl Metrics ===

impl Metrics {
    /// Registers all families, their names prefixed `cluster_gateway_`.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            requests: Family::default(),
            duration: Family::new_with_constructor(|| Histogram::new(&DURATION_BUCKETS)),
            in_flight: Family::default(),
            upgrades: Family::default(),
            upgrade_bytes: Family::default(),
            connections: Family::default(),
            dial_errors: Family::default(),
            circuits: Family::default(),
            credential: credential::Families::default(),
            clusters: Family::default(),
            client_connections: Gauge::default(),
            tls_failures: Counter::default(),
            failures: Family::default(),
            proxied: None,
            live: Arc::default(),
        };
        metrics.announce(registry);
        metrics.credential.announce(registry);
        metrics
    }

    /// Registers those of the Go cluster-gateway too, for clusters from now on.
    #[must_use]
    pub fn with_proxied(mut self, registry: &mut Registry) -> Self {
        self.proxied = Some(Proxied::register(registry));
        self
    }

    fn announce(&self, registry: &mut Registry) {
        self.announce_requests(registry);
        self.announce_connections(registry);
        registry.register(
            "cluster_gateway_clusters",
            "Registered clusters by state (ready, invalid)",
            self.clusters.clone(),
        );
    }

    fn announce_requests(&self, registry: &mut Registry) {
        registry.register(
            "cluster_gateway_requests",
            "Requests by cluster (empty: answered by the gateway itself), verb, HTTP status code and dialect (absent: native)",
            self.requests.clone(),
        );
        registry.register(
            "cluster_gateway_request_duration_seconds",
            "Time from request head to end of response, streams and upgrades excluded",
            self.duration.clone(),
        );
        registry.register(
            "cluster_gateway_requests_in_flight",
            "Requests being served, streams included, upgrades excluded",
            self.in_flight.clone(),
        );
        registry.register(
            "cluster_gateway_upgrades_in_flight",
            "Open upgraded connections (exec, attach, port-forward)",
            self.upgrades.clone(),
        );
        registry.register(
            "cluster_gateway_upgrade_bytes",
            "Bytes moved over upgraded connections, in both directions",
            self.upgrade_bytes.clone(),
        );
        registry.register(
            "cluster_gateway_failures",
            "Requests that the gateway answered with its own error, by the side that failed",
            self.failures.clone(),
        );
    }

    fn announce_connections(&self, registry: &mut Registry) {
        registry.register(
            "cluster_gateway_upstream_connections",
            "Open pooled connections to the member",
            self.connections.clone(),
        );
        registry.register(
            "cluster_gateway_upstream_dial_errors",
            "Connections to the member that could not be opened, by kind",
            self.dial_errors.clone(),
        );
        registry.register(
            "cluster_gateway_upstream_circuit_open",
            "1 while dials to the member are paused because the last ones failed",
            self.circuits.clone(),
        );
        registry.register(
            "cluster_gateway_client_connections",
            "Open client connections",
            self.client_connections.clone(),
        );
        registry.register(
            "cluster_gateway_tls_handshake_failures",
            "Client connections that failed during the TLS handshake",
            self.tls_failures.clone(),
        );
    }

    /// The series of `cluster`; the empty name is for what the gateway answers itself.
    pub fn for_cluster(&self, cluster: Arc<str>) -> Arc<ClusterMetrics> {
        let mut live = self.live.lock();
        if let Some(metrics) = live.get(&cluster).and_then(Weak::upgrade) {
            return metrics;
        }
        let metrics = self.series(ClusterLabels { cluster: Arc::clone(&cluster) });
        live.insert(cluster, Arc::downgrade(&metrics));
        metrics
    }

    fn series(&self, labels: ClusterLabels) -> Arc<ClusterMetrics> {
        Arc::new(ClusterMetrics {
            duration: self.duration.get_or_create_owned(&labels),
            in_flight: self.in_flight.get_or_create_owned(&labels),
            upgrades: self.upgrades.get_or_create_owned(&labels),
            upgrade_bytes: self.upgrade_bytes.get_or_create_owned(&labels),
            connections: self.connections.get_or_create_owned(&labels),
            circuit: self.circuits.get_or_create_owned(&labels),
            newest_circuit: Arc::default(),
            proxied: self
                .proxied
                .as_ref()
                .filter(|_| !labels.cluster.is_empty())
                .map(|all| all.of_cluster(&labels.cluster)),
            labels,
            families: self.clone(),
            by_outcome: Default::default(),
            by_dial_error: Mutex::default(),
            since: SystemTime::now(),
            streams: Gauge::default(),
            by_side: Default::default(),
            recent: Recent::default(),
        })
    }

    pub fn set_clusters(&self, ready: usize, invalid: usize) {
        for (state, count) in [("ready", ready), ("invalid", invalid)] {
            self.clusters.get_or_create(&StateLabels { state }).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// A second review, of the proxied request's own attributes, has taken this long; `success` if
    /// the hub answered it.
    pub fn escalation_reviewed(&self, success: bool, took: Duration) {
        if let Some(proxied) = &self.proxied {
            proxied.escalation_reviewed(success, took);
        }
    }

    pub fn client_connection(&self) -> InFlight {
        InFlight::new(&self.client_connections)
    }

    pub fn tls_failed(&self) {
        self.tls_failures.inc();
    }

    /// A request ended in a failure of this side: caller, hub, gateway, tunnel or member.
    pub fn failed(&self, side: &'static str) {
        self.failures.get_or_create(&SideLabels { side }).inc();
    }
}

// === impl ClusterMetrics ===

impl ClusterMetrics {
    pub fn request_done(&self, dialect: Dialect, verb: Verb, code: u16) {
        let make = |code| self.families.requests.get_or_create_owned(&self.labels_of(dialect, verb, code));
        let outcomes = &self.by_outcome[dialect as usize];
        // Codes are the member's choice.
        let class = code / 100 * 100;
        let known = outcomes.get_or_add(MOST_OUTCOMES, (verb, code), || make(code));
        let known = known.or_else(|| outcomes.get_or_add(MOST_OUTCOMES + CLASSES, (verb, class), || make(class)));
        if let Some(counter) = known {
            counter.inc();
        }
    }

    fn labels_of(&self, dialect: Dialect, verb: Verb, code: u16) -> RequestLabels {
        let (cluster, dialect) = (self.labels.cluster.clone(), DialectLabel(dialect));
        RequestLabels { cluster, verb: verb.method(), code, dialect }
    }

    /// What requests for `resource` are about in the Go cluster-gateway's metrics.
    pub fn topic(&self, resource: &str) -> Option<Topic> {
        self.proxied.as_ref().map(|proxied| proxied.topic(resource))
    }

    /// A request for the member has ended.
    pub fn proxied_done(&self, topic: &Topic, verb: Verb, code: u16, took: Duration) {
        if let Some(proxied) = &self.proxied {
            proxied.done(topic, verb, code, took);
        }
    }

    pub fn observe_duration(&self, took: Duration) {
        self.duration.observe(took);
    }

    pub fn dial_failed(&self, kind: &'static str) {
        let mut known = self.by_dial_error.lock();
        known
            .entry(kind)
            .or_insert_with(|| {
                let labels = DialErrorLabels { cluster: self.labels.cluster.clone(), kind };
                self.families.dial_errors.get_or_create_owned(&labels)
            })
            .inc();
    }

    pub fn request(&self) -> InFlight {
        InFlight::new(&self.in_flight)
    }

    pub fn upgrade(&self) -> InFlight {
        InFlight::new(&self.upgrades)
    }

    /// A watch, or another answer that does not end by itself.
    pub fn stream(&self) -> InFlight {
        InFlight::new(&self.streams)
    }

    /// A request ended in a failure of the gateway's own.
    pub fn failed(&self, side: Side) {
        self.by_side[side as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The last failures that the log told of.
    pub fn recent(&self) -> &Recent {
        &self.recent
    }

    pub fn upgrade_moved(&self, bytes: u64) {
        self.upgrade_bytes.inc_by(bytes);
    }

    pub fn connections(&self) -> &Gauge {
        &self.connections
    }

    /// For a new circuit, which speaks for the cluster from now on.
    pub fn circuit(&self) -> CircuitGauge {
        CircuitGauge::newest(&self.circuit, &self.newest_circuit)
    }
}

impl Drop for ClusterMetrics {
    fn drop(&mut self) {
        let (families, labels) = (&self.families, &self.labels);
        let mut live = families.live.lock();
        // Somebody may have begun to use the same series between the last handle's end and this.
        if live.get(&labels.cluster).is_some_and(|other| !std::ptr::eq(other.as_ptr(), self)) {
            return;
        }
        live.remove(&labels.cluster);
        families.duration.remove(labels);
        families.in_flight.remove(labels);
        families.upgrades.remove(labels);
        families.upgrade_bytes.remove(labels);
        families.connections.remove(labels);
        if let Some(proxied) = &self.proxied {
            proxied.forget();
        }
        families.circuits.remove(labels);
        families.credential.remove(labels);
        for dialect in Dialect::ALL {
            for (verb, code) in self.by_outcome[dialect as usize].keys() {
                families.requests.remove(&self.labels_of(dialect, verb, code));
            }
        }
        for kind in self.by_dial_error.get_mut().keys() {
            families.dial_errors.remove(&DialErrorLabels { cluster: labels.cluster.clone(), kind });
        }
    }
}
