//! What came of asking the hub about clusters that were not known.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    result: &'static str,
}

/// Cheap to clone.
#[derive(Clone)]
pub struct SecondLooks(Family<Labels, Counter>);

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

    /// `result` is one of a fixed set.
    pub fn count(&self, result: &'static str) {
        self.0.get_or_create_owned(&Labels { result }).inc();
    }
}
