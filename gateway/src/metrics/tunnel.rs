//! Metrics of streams through the tunnel, and of links to tunnel-servers.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use telemetry::histogram::Histogram;

/// In seconds. From a round trip in a data centre to the usual dial timeout.
const BUCKETS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    outcome: &'static str,
    hop: &'static str,
}

/// Cheap to clone.
#[derive(Clone)]
pub struct TunnelMetrics {
    links: Gauge,
    opens: Family<Labels, Counter>,
    reload_failures: Counter,
    seconds: Histogram,
}

// === impl TunnelMetrics ===

impl TunnelMetrics {
    /// Registers all families, their names prefixed `cluster_gateway_tunnel_`.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            links: Gauge::default(),
            opens: Family::default(),
            reload_failures: Counter::default(),
            seconds: Histogram::new(&BUCKETS),
        };
        registry.register("cluster_gateway_tunnel_links", "Links to tunnel-servers", metrics.links.clone());
        registry.register(
            "cluster_gateway_tunnel_opens",
            "Streams requested from the tunnel, by outcome and by the hop that failed (gateway, server, agent; empty: none)",
            metrics.opens.clone(),
        );
        registry.register(
            "cluster_gateway_tunnel_reload_failures",
            "Changes of --proxy-ca-cert, --proxy-cert or --proxy-key that could not be used",
            metrics.reload_failures.clone(),
        );
        registry.register(
            "cluster_gateway_tunnel_open_seconds",
            "Time until a stream was opened or refused",
            metrics.seconds.clone(),
        );
        metrics
    }

    pub fn links(&self) -> &Gauge {
        &self.links
    }

    pub fn reload_failed(&self) {
        self.reload_failures.inc();
    }

    pub fn opened(&self, took: Duration) {
        self.count("opened", "", took);
    }

    /// `outcome` and `hop` are words of fixed sets.
    pub fn failed(&self, outcome: &'static str, hop: &'static str, took: Duration) {
        self.count(outcome, hop, took);
    }

    fn count(&self, outcome: &'static str, hop: &'static str, took: Duration) {
        self.opens.get_or_create_owned(&Labels { outcome, hop }).inc();
        self.seconds.observe(took);
    }
}
