//! What one cluster's requests, upgrades and dials count.

use std::sync::atomic::Ordering;
use std::time::Duration;

use api::route::Dialect;
use api::side::Side;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use telemetry::metrics::InFlight;

use super::clusters::CircuitGauge;
use super::labels::{DialectLabel, HttpMethod};
use super::proxied::Topic;
use super::recent::Recent;
use super::tunnel_open::TunnelOpen;
use super::{CLASSES, ClusterMetrics, DialErrorLabels, MOST_OUTCOMES, RequestLabels};

// === impl ClusterMetrics ===

impl ClusterMetrics {
    pub fn request_done(&self, dialect: Dialect, verb: HttpMethod, code: u16) {
        if let Some(counter) = self.by_outcome[dialect as usize].get((verb, code)) {
            counter.inc();
        } else if let Some(counter) = self.new_outcome(dialect, verb, code) {
            counter.inc();
        }
    }

    fn new_outcome(&self, dialect: Dialect, verb: HttpMethod, code: u16) -> Option<&Counter> {
        let (held, outcomes) = (self.life.hold(), &self.by_outcome[dialect as usize]);
        let make = |code| {
            let labels = self.labels_of(dialect, verb, code);
            held.series(|| self.families.requests.get_or_create_owned(&labels), Counter::default)
        };
        // The member chooses the codes.
        let class = code / 100 * 100;
        let known = outcomes.get_or_add(MOST_OUTCOMES, (verb, code), || make(code));
        known.or_else(|| outcomes.get_or_add(MOST_OUTCOMES + CLASSES, (verb, class), || make(class)))
    }

    fn labels_of(&self, dialect: Dialect, verb: HttpMethod, code: u16) -> RequestLabels {
        let (cluster, dialect) = (self.labels.cluster.clone(), DialectLabel(dialect));
        RequestLabels { cluster, verb: verb.method(), code, dialect }
    }

    /// The topic of requests for `resource` in the Go cluster-gateway's metrics.
    pub fn topic(&self, resource: &str) -> Option<Topic> {
        self.proxied.as_ref().map(|proxied| proxied.topic(resource))
    }

    /// Counts a request for the member that has ended.
    pub fn proxied_done(&self, topic: &Topic, verb: HttpMethod, code: u16, took: Duration) {
        if let Some(proxied) = &self.proxied {
            proxied.done(topic, verb, code, took);
        }
    }

    pub fn observe_duration(&self, took: Duration) {
        self.duration.observe(took);
    }

    pub fn dial_failed(&self, kind: &'static str) {
        let held = self.life.hold();
        let mut known = self.by_dial_error.lock();
        let counter = known.entry(kind).or_insert_with(|| {
            let labels = DialErrorLabels { cluster: self.labels.cluster.clone(), kind };
            held.series(|| self.families.dial_errors.get_or_create_owned(&labels), Counter::default)
        });
        counter.inc();
    }

    pub fn request(&self) -> InFlight {
        InFlight::new(&self.in_flight)
    }

    pub fn upgrade(&self) -> InFlight {
        InFlight::new(&self.upgrades)
    }

    /// Counts a watch, or another response that does not end by itself.
    pub fn stream(&self) -> InFlight {
        InFlight::new(&self.streams)
    }

    /// Counts a request that ended with the gateway's own failure.
    pub fn failed(&self, side: Side) {
        self.by_side[side as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The last failures in the log.
    pub fn recent(&self) -> &Recent {
        &self.recent
    }

    /// Records an ended attempt to open a byte stream through the tunnel, which took `took`.
    pub fn tunnel_open_ended(&self, attempt: TunnelOpen, took: Duration) {
        self.tunnel_open.set(attempt, took);
    }

    pub fn upgrade_moved(&self, bytes: u64) {
        self.upgrade_bytes.inc_by(bytes);
    }

    pub fn connections(&self) -> &Gauge {
        &self.connections
    }

    /// The gauge for a new circuit, which replaces the former one's.
    pub fn circuit(&self) -> CircuitGauge {
        CircuitGauge::newest(&self.circuit, &self.newest_circuit)
    }

    /// Removes the cluster's series.
    pub(super) fn remove(&self) {
        let (families, labels) = (&self.families, &self.labels);
        let mut held = self.life.hold();
        held.end();
        families.duration.remove(labels);
        families.in_flight.remove(labels);
        families.upgrades.remove(labels);
        families.upgrade_bytes.remove(labels);
        families.connections.remove(labels);
        families.circuits.remove(labels);
        families.tunnelled.remove(labels);
        families.credential.remove(labels);
        if let Some(proxied) = &self.proxied {
            proxied.remove();
        }
        for dialect in Dialect::ALL {
            for (verb, code) in self.by_outcome[dialect as usize].keys() {
                families.requests.remove(&self.labels_of(dialect, verb, code));
            }
        }
        for kind in self.by_dial_error.lock().keys() {
            families.dial_errors.remove(&DialErrorLabels { cluster: labels.cluster.clone(), kind });
        }
    }
}
