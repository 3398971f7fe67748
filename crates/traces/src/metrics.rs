//! What became of finished spans.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

/// Clones share their values.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    pub(crate) exported: Counter,
    pub(crate) dropped: Counter,
    pub(crate) failed: Counter,
}

// === impl Metrics ===

impl Metrics {
    /// Registers `cluster_gateway_trace_spans_exported_total`, `…_dropped_total` and
    /// `…_failed_total`.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        for (name, help, counter) in [
            ("exported", "Spans that the collector accepted", &metrics.exported),
            ("dropped", "Spans dropped because the queue was full", &metrics.dropped),
            ("failed", "Spans lost because the collector did not accept them", &metrics.failed),
        ] {
            registry.register(format!("cluster_gateway_trace_spans_{name}"), help, counter.clone());
        }
        metrics
    }
}
