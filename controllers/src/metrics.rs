//! `cluster_gateway_controllers_*`: events are counted where they happen; states of objects are
//! read at each scrape.

mod accounts;
mod argocd;
mod availability;
mod delivery;
mod joining;
mod placements;
mod profiles;
mod queues;
mod replica_sets;
mod tally;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;
use register::expiry::Expiry;
use telemetry::histogram::Histogram;

pub use self::accounts::{AccountState, Accounts};
pub use self::argocd::Argocd;
pub use self::availability::{Availability, Judged};
pub use self::delivery::{Act, Delivery, Ended, Unwatched, WorkState};
pub use self::joining::{Decision, Joining};
pub use self::placements::{Object, Placements};
pub use self::profiles::{ProfileState, Profiles};
pub use self::queues::Queues;
pub use self::replica_sets::{ReplicaSets, SetObject, SetState};
use crate::reports::{Reports, Stage};

const PREFIX: &str = "cluster_gateway_controllers";
/// In seconds: a write to the hub takes milliseconds, a queue of ten thousand takes a minute.
const BOUNDS: &[f64] = &[0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

/// All metrics. Clones share their values.
#[derive(Debug, Clone)]
pub struct Metrics {
    available: Family<OfSource, Gauge>,
    writes: Family<Write, Counter>,
    registration_seconds: Histogram,
    held: Family<OfSource, Gauge>,
    failures: Family<OfSource, Counter>,
    expiry: Family<OfCluster, Gauge>,
    pub queues: Queues,
    pub joining: Joining,
    pub profiles: Profiles,
    pub leader: Gauge,
    /// Events dropped because the queue was full.
    pub events_left_out: Counter,
    pub accounts: Accounts,
    pub placements: Placements,
    pub replica_sets: ReplicaSets,
    pub argocd: Argocd,
    pub delivery: Delivery,
    pub availability: Availability,
    standing_by: Family<OfController, Gauge>,
}

/// The operation on a Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfSource {
    source: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfCluster {
    cluster: String,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfController {
    controller: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Write {
    source: &'static str,
    operation: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfState {
    source: &'static str,
    state: &'static str,
}

/// Objects by source and state.
#[derive(Debug)]
struct Objects(Arc<Reports>);

/// A part's metrics exist only while it runs: dropping this clears them.
pub struct Counting {
    metrics: Metrics,
    clear: fn(&Metrics),
}

impl Drop for Counting {
    fn drop(&mut self) {
        (self.clear)(&self.metrics);
    }
}

// === impl Operation ===

impl Operation {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

// === impl Metrics ===

impl Metrics {
    pub fn register(registry: &mut Registry, reports: Arc<Reports>) -> Self {
        let metrics = Self {
            available: Family::default(),
            writes: Family::default(),
            registration_seconds: Histogram::new(BOUNDS),
            held: Family::default(),
            failures: Family::default(),
            expiry: Family::default(),
            queues: Queues::register(registry),
            joining: Joining::register(registry),
            profiles: Profiles::register(registry),
            leader: Gauge::default(),
            events_left_out: Counter::default(),
            accounts: Accounts::register(registry),
            placements: Placements::register(registry),
            replica_sets: ReplicaSets::register(registry),
            argocd: Argocd::register(registry),
            delivery: Delivery::register(registry),
            availability: Availability::register(registry),
            standing_by: Family::default(),
        };
        let mut add = |name: &str, help: &str, metric: &Family<OfSource, Gauge>| {
            registry.register(format!("{PREFIX}_{name}"), help, metric.clone());
        };
        add("source_available", "1 while the objects of a source can be read", &metrics.available);
        add(
            "removals_held",
            "Registrations kept because too many objects of their source were removed at once",
            &metrics.held,
        );
        registry.register(format!("{PREFIX}_secret_writes"), "Writes of cluster Secrets", metrics.writes.clone());
        registry.register(
            format!("{PREFIX}_registration_seconds"),
            "Time from the first sight of a change to the written Secret",
            metrics.registration_seconds.clone(),
        );
        registry.register(
            format!("{PREFIX}_failures"),
            "Objects that could not be read or written and are retried",
            metrics.failures.clone(),
        );
        registry.register(
            format!("{PREFIX}_credential_expiry_timestamp_seconds"),
            "Expiry of a registered credential, if it contains one",
            metrics.expiry.clone(),
        );
        registry.register(format!("{PREFIX}_leader"), "1 while this replica writes", metrics.leader.clone());
        registry.register(
            format!("{PREFIX}_events_left_out"),
            "Events dropped because the queue was full",
            metrics.events_left_out.clone(),
        );
        registry.register(
            format!("{PREFIX}_standing_by"),
            "1 while a part stands by because other controllers hold the Lease for its task",
            metrics.standing_by.clone(),
        );
        registry.register_collector(Box::new(Objects(reports)));
        metrics
    }

    pub fn source_available(&self, source: &'static str, is_available: bool) {
        self.available.get_or_create(&OfSource { source }).set(is_available.into());
    }

    pub fn wrote(&self, source: &'static str, operation: Operation) {
        self.writes.get_or_create(&Write { source, operation: operation.as_str() }).inc();
    }

    pub fn registered_after(&self, took: Duration) {
        self.registration_seconds.observe(took);
    }

    pub fn failed(&self, source: &'static str) {
        self.failures.get_or_create(&OfSource { source }).inc();
    }

    /// A cluster is registered with a credential of this expiry.
    pub fn expires(&self, cluster: &str, expiry: Expiry) {
        let cluster = OfCluster { cluster: cluster.to_owned() };
        match expiry {
            Expiry::At(end) => {
                self.expiry.get_or_create(&cluster).set(end);
            }
            Expiry::Never | Expiry::Unknown => {
                self.expiry.remove(&cluster);
            }
        }
    }

    /// A cluster is no longer registered by us.
    pub fn ended(&self, cluster: &str) {
        self.expires(cluster, Expiry::Unknown);
    }

    /// Returns a guard that clears metrics when their part ends.
    pub fn counting(&self, clear: fn(&Self)) -> Counting {
        Counting { metrics: self.clone(), clear }
    }

    /// Another replica writes now: what this one saw is no longer true.
    pub fn retire(&self) {
        self.leader.set(0);
        self.available.clear();
        self.held.clear();
        self.expiry.clear();
        self.queues.clear();
        self.joining.clear();
        self.profiles.clear();
        self.accounts.clear();
        self.placements.clear();
        self.replica_sets.clear();
        self.argocd.clear();
        self.delivery.clear();
        self.availability.clear();
        self.standing_by.clear();
    }

    pub fn stands_by(&self, controller: &'static str, stands_by: bool) {
        self.standing_by.get_or_create(&OfController { controller }).set(stands_by.into());
    }

    /// Sets how many registrations of a source stay although their objects are gone.
    pub fn removals_held(&self, source: &'static str, count: usize) {
        self.held.get_or_create(&OfSource { source }).set(i64::try_from(count).unwrap_or(i64::MAX));
    }
}

// === impl Objects ===

impl Collector for Objects {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let counts = self.0.counts();
        let sources: BTreeSet<&'static str> = counts.keys().map(|(source, _)| *source).collect();
        let (name, help) = (format!("{PREFIX}_source_objects"), "Objects of a source, by outcome");
        let mut objects = encoder.encode_descriptor(&name, help, None, MetricType::Gauge)?;
        for source in sources {
            for state in Stage::ALL {
                let count = ConstGauge::new(counts.get(&(source, state)).copied().unwrap_or_default());
                count.encode(objects.encode_family(&OfState { source, state: state.as_str() })?)?;
            }
        }
        let (name, help) = (format!("{PREFIX}_former_names"), "Former names of objects, whose Secrets stay");
        let mut formers = encoder.encode_descriptor(&name, help, None, MetricType::Gauge)?;
        for (source, count) in self.0.formers() {
            ConstGauge::new(count).encode(formers.encode_family(&OfSource { source })?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod selected;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_that_leads_no_more_says_nothing_of_sources_and_clusters() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry, Arc::default());
        let encoded = || {
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
            text
        };
        metrics.leader.set(1);
        metrics.source_available("capi", false);
        metrics.expires("c1", Expiry::At(1_900_000_000));
        metrics.expires("c2", Expiry::Never);
        let text = encoded();
        assert!(text.contains("source_available{source=\"capi\"} 0"), "{text}");
        assert!(text.contains("expiry_timestamp_seconds{cluster=\"c1\"} 1900000000"), "{text}");
        assert!(!text.contains("c2") && text.contains("leader 1"), "{text}");
        metrics.retire();
        let text = encoded();
        assert!(!text.contains("capi") && !text.contains("c1") && text.contains("leader 0"), "{text}");
    }
}
