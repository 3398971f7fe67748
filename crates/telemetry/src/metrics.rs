//! The metrics registry and its text form.

use std::sync::Arc;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::process::Process;

/// Content type of [`Metrics::encode`] (OpenMetrics 1.0, which Prometheus asks for and reads).
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A finished registry: everything is registered at start-up, nothing after. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<Registry>);

/// One more of what a gauge tells, until dropped.
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
    /// Adds what the kernel says of the process.
    pub fn new(mut registry: Registry) -> Self {
        registry.register_collector(Box::new(Process::of_this()));
        Self(Arc::new(registry))
    }

    /// All metrics as OpenMetrics text.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail; an encoder that reports an error all the same leaves
        // what it wrote so far.
        let _ = encode(&mut text, &self.0);
        text
    }
}
