//! What became of the events.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

/// Counters of the audit log. Clones share their values.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    pub(crate) written: Counter,
    pub(crate) dropped: Counter,
    pub(crate) write_errors: Counter,
}

// === impl Metrics ===

impl Metrics {
    /// Registers `cluster_gateway_audit_events_written_total`, `…_dropped_total` and
    /// `…_write_errors_total`.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        for (name, help, counter) in [
            ("written", "Audit events written", &metrics.written),
            ("dropped", "Audit events dropped because the queue was full or closed", &metrics.dropped),
            ("write_errors", "Audit events lost because they could not be written", &metrics.write_errors),
        ] {
            registry.register(format!("cluster_gateway_audit_events_{name}"), help, counter.clone());
        }
        metrics
    }
}
