//! Whether a cluster's circuit is open, as told by the newest of its circuits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::metrics::gauge::Gauge;

/// One circuit's hold on its cluster's series. When a Secret changes, a new circuit takes over, and
/// what dials of the old one come to later is no longer told.
pub struct CircuitGauge {
    gauge: Gauge,
    newest: Arc<AtomicU64>,
    own: u64,
}

// === impl CircuitGauge ===

impl CircuitGauge {
    /// Takes the series over from whoever had it.
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
