//! The metrics registry and its text format.

use std::sync::Arc;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::process::Process;

/// Content type of [`Metrics::encode`] (OpenMetrics 1.0, which Prometheus requests).
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A finished registry: all metrics are registered at start-up, and none later. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<Registry>);

/// Raises a gauge by one until it is dropped.
#[derive(Debug)]
pub struct InFlight(Gauge);

// === impl InFlight ===

impl InFlight {
    pub fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

// === impl Metrics ===

impl Metrics {
    /// Adds the kernel's metrics of the process.
    pub fn new(mut registry: Registry) -> Self {
        registry.register_collector(Box::new(Process::of_this()));
        Self(Arc::new(registry))
    }

    /// All metrics as OpenMetrics text.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail. If an encoder reports an error anyway, the text so far
        // remains.
        let _ = encode(&mut text, &self.0);
        text
    }
}
