//! Metrics of the file with rules.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// `cluster_gateway_identity_rules_loads_total{result}`, `cluster_gateway_identity_rules_current`.
/// Clones share their values.
#[derive(Debug, Clone)]
pub struct Metrics {
    good: Counter,
    bad: Counter,
    current: Gauge,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabels {
    result: &'static str,
}

// === impl Metrics ===

impl Metrics {
    pub fn register(registry: &mut Registry) -> Self {
        let loads = Family::<ResultLabels, Counter>::default();
        registry.register(
            "cluster_gateway_identity_rules_loads",
            "Times the file of identity rules was read, by result",
            loads.clone(),
        );
        let current = Gauge::default();
        registry.register(
            "cluster_gateway_identity_rules_current",
            "1 while the rules in force are those of the file, 0 if it could not be used when it last changed",
            current.clone(),
        );
        current.set(1);
        let counter = |result| loads.get_or_create_owned(&ResultLabels { result });
        Self { good: counter("success"), bad: counter("failure"), current }
    }

    pub(super) fn loaded(&self) {
        self.good.inc();
        self.current.set(1);
    }

    pub(super) fn refused(&self) {
        self.bad.inc();
        self.current.set(0);
    }
}
