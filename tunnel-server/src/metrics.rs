//! Counters of frontends and relayed streams.
//!
//! A cluster becomes a label only once an agent has proved it, and at most [`MOST_CLUSTERS`]
//! clusters do: a name that a frontend merely requests makes no series. A scrape reads the bytes of
//! open streams from their gauges, so that relaying counts each byte once.

mod streams;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use foldhash::quality::RandomState;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use telemetry::histogram::Histogram;
use telemetry::metrics::InFlight;
use tunnel::{Budget, ClusterName, Refusal};

pub use self::streams::Open;
use self::streams::{ShedStreams, Streams};

/// Most clusters with series of their own; the others share one, called [`OTHER`].
const MOST_CLUSTERS: usize = 1_000;
const OTHER: &str = "other";
/// The label of an attempt without a known cluster.
const NONE: &str = "";
/// Seconds, from a member in the same building to the longest dial that should occur.
const DIAL_BUCKETS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ClusterLabels {
    cluster: Arc<str>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OutcomeLabels {
    cluster: Arc<str>,
    hop: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct FrontendLabels {
    listener: &'static str,
    protocol: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct EndLabels {
    cluster: Arc<str>,
    end: &'static str,
}

/// The frontends' listener reads these.
const FILES: [&str; 2] = ["certificate", "client-ca"];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct FileLabels {
    file: &'static str,
}

/// How an attempt to open a stream ended.
#[derive(Debug, Clone, Copy)]
pub enum Outcome<'a> {
    Opened,
    Refused(&'a Refusal),
    /// The frontend left before the answer.
    Cancelled,
}

/// Metric handles. Clones share their values.
#[derive(Debug, Clone)]
pub struct Metrics {
    attempts: Family<OutcomeLabels, Counter>,
    dials: Family<ClusterLabels, Histogram, fn() -> Histogram>,
    ended: Family<EndLabels, Counter>,
    streams: Arc<Streams>,
    frontends: Family<FrontendLabels, Gauge>,
    turned_away: Family<ReasonLabels, Counter>,
    reload_failures: Family<FileLabels, Counter>,
    names: Arc<Mutex<HashMap<ClusterName, Arc<str>, RandomState>>>,
}

// === impl Metrics ===

impl Metrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            attempts: Family::default(),
            dials: Family::new_with_constructor(|| Histogram::new(&DIAL_BUCKETS)),
            ended: Family::default(),
            streams: Arc::default(),
            frontends: Family::default(),
            turned_away: Family::default(),
            reload_failures: Family::default(),
            names: Arc::default(),
        };
        metrics.announce_streams(registry);
        metrics.announce_frontends(registry);
        // At 0 from the start: Prometheus sees no increase in a series that first appears with 1.
        for file in FILES {
            drop(metrics.reload_failures.get_or_create(&FileLabels { file }));
        }
        registry.register_collector(Box::new(Arc::clone(&metrics.streams)));
        metrics
    }

    fn announce_streams(&self, registry: &mut Registry) {
        registry.register(
            "tunnel_server_streams_opened",
            "Streams that frontends requested, by outcome: opened, cancelled by the frontend, or the reason of the \
             refusal and the hop that refused",
            self.attempts.clone(),
        );
        registry.register(
            "tunnel_server_dial_duration_seconds",
            "Time from a frontend's CONNECT to the answer of the cluster's agent, of streams that were opened",
            self.dials.clone(),
        );
        registry.register(
            "tunnel_server_streams_ended",
            "Streams that ended: finished by both sides, reset by one or with its link, or cut here for holding too much or by an operator",
            self.ended.clone(),
        );
    }

    fn announce_frontends(&self, registry: &mut Registry) {
        registry.register(
            "tunnel_server_frontend_connections",
            "Connections of frontends, by listener and protocol",
            self.frontends.clone(),
        );
        registry.register(
            "tunnel_server_frontend_connections_refused",
            "Connections of frontends that ended without a valid and allowed CONNECT, by reason",
            self.turned_away.clone(),
        );
        registry.register(
            "tunnel_server_frontend_reload_failures",
            "Changes of the frontends' certificate and CA files that could not be used; the last good ones stay in use",
            self.reload_failures.clone(),
        );
    }

    /// Counts an attempt. The registry must know `cluster`.
    pub fn attempted(&self, cluster: Option<&ClusterName>, outcome: Outcome<'_>, took: Duration) {
        let cluster = cluster.map_or_else(|| NONE.into(), |cluster| self.name(cluster));
        let (hop, word) = match outcome {
            Outcome::Opened => (NONE, "opened"),
            Outcome::Cancelled => (NONE, "cancelled"),
            Outcome::Refused(refusal) => (refusal.hop.as_str(), refusal.reason.as_str()),
        };
        if matches!(outcome, Outcome::Opened) {
            self.dials.get_or_create(&ClusterLabels { cluster: Arc::clone(&cluster) }).observe(took);
        }
        self.attempts.get_or_create(&OutcomeLabels { cluster, hop, outcome: word }).inc();
    }

    /// Counts the end of a stream of `cluster`; `error` cut the stream.
    pub fn ended(&self, cluster: &ClusterName, error: Option<io::ErrorKind>) {
        let end = match error {
            None => "finished",
            Some(io::ErrorKind::QuotaExceeded) => "cut",
            Some(_) => "reset",
        };
        self.ended.get_or_create(&EndLabels { cluster: self.name(cluster), end }).inc();
    }

    /// Registers the number of streams that `budget` has reset.
    pub fn watch(registry: &mut Registry, budget: &Budget) {
        registry.register(
            "tunnel_server_sheds",
            "Streams reset because all together held more bytes than --max-held-bytes",
            ShedStreams(budget.clone()),
        );
    }

    /// Counts a stream of `cluster` and the bytes in `gauge` until the value is dropped.
    pub fn open(&self, cluster: &ClusterName, gauge: Arc<tunnel::Gauge>) -> Open {
        self.streams.open(self.name(cluster), gauge)
    }

    /// Counts a connection until the value is dropped.
    pub fn connected(&self, listener: &'static str, protocol: &'static str) -> InFlight {
        InFlight::new(&self.frontends.get_or_create_owned(&FrontendLabels { listener, protocol }))
    }

    /// Counts a connection that ended without a `CONNECT` that could be served.
    pub fn turned_away(&self, reason: &'static str) {
        self.turned_away.get_or_create(&ReasonLabels { reason }).inc();
    }

    /// Counts a changed file that could not be used.
    pub fn reload_failed(&self, file: &'static str) {
        self.reload_failures.get_or_create(&FileLabels { file }).inc();
    }

    fn name(&self, cluster: &ClusterName) -> Arc<str> {
        let mut names = self.names.lock();
        if let Some(name) = names.get(cluster) {
            return Arc::clone(name);
        }
        let name: Arc<str> = if names.len() < MOST_CLUSTERS { cluster.as_str().into() } else { return OTHER.into() };
        names.insert(cluster.clone(), Arc::clone(&name));
        name
    }
}

#[cfg(test)]
mod tests;
