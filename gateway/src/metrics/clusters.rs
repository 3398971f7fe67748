//! Metrics of clusters: whether one's newest circuit is open, whether it is behind the tunnel, and
//! the outcomes of queries to the hub about unknown names.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::ClusterMetrics;

/// One circuit's handle of its cluster's series. When a Secret changes, a new circuit takes over,
/// and later dials of the old one do not count.
pub struct CircuitGauge {
    gauge: Gauge,
    newest: Arc<AtomicU64>,
    own: u64,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    result: &'static str,
}

/// Cheap to clone.
#[derive(Clone)]
pub struct SecondLooks(Family<Labels, Counter>);

// === impl CircuitGauge ===

impl CircuitGauge {
    /// Takes the series over from the former circuit.
    pub(super) fn newest(gauge: &Gauge, newest: &Arc<AtomicU64>) -> Self {
        let own = newest.fetch_add(1, Ordering::Relaxed) + 1;
        gauge.set(0);
        Self { gauge: gauge.clone(), newest: Arc::clone(newest), own }
    }

    pub fn set(&self, open: bool) {
        if self.newest.load(Ordering::Relaxed) == self.own {
            self.gauge.set(i64::from(open));
        }
    }
}

// === impl ClusterMetrics ===

impl ClusterMetrics {
    /// Sets whether the cluster is registered behind the tunnel.
    pub fn set_tunnelled(&self, tunnelled: bool) {
        let held = self.life.hold();
        if held.is_over() {
            return;
        }
        if tunnelled {
            self.families.tunnelled.get_or_create(&self.labels).set(1);
        } else {
            self.families.tunnelled.remove(&self.labels);
        }
    }
}

// === impl SecondLooks ===

impl SecondLooks {
    /// Registers `cluster_gateway_second_looks`.
    pub fn register(registry: &mut Registry) -> Self {
        let looks = Self(Family::default());
        registry.register(
            "cluster_gateway_second_looks",
            "Queries to the hub about names that are not among the clusters, by result (found, absent, forbidden, \
             failed; limited: not sent), and requests for found ones that the watch did not deliver in time (late)",
            looks.0.clone(),
        );
        looks
    }

    /// `result` is a word of a fixed set.
    pub fn count(&self, result: &'static str) {
        self.0.get_or_create_owned(&Labels { result }).inc();
    }
}
