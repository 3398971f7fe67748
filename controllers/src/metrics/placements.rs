//! `cluster_gateway_placement_*`: the Placements that this replica schedules.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use telemetry::histogram::Histogram;

use super::Operation;
use crate::wakes::Key;

const PREFIX: &str = "cluster_gateway_placement";
/// In seconds: a run over a thousand clusters takes less than a millisecond.
const BOUNDS: &[f64] = &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0];

/// Clones share their values.
#[derive(Debug, Clone)]
pub struct Placements {
    schedule: Histogram,
    states: Arc<Mutex<HashMap<Key, RunResult>>>,
    decisions: Gauge,
    misconfigured: Gauge,
    writes: Family<OfWrite, Counter>,
    removals_held: Counter,
}

/// The result of a run.
#[derive(Debug, Clone, Copy, Default)]
struct RunResult {
    decisions: i64,
    misconfigured: i64,
}

/// The kind of a written object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    Decision,
    /// A Placement's status.
    Placement,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfWrite {
    object: &'static str,
    operation: &'static str,
}

// === impl Placements ===

impl Placements {
    pub fn register(registry: &mut Registry) -> Self {
        let placements = Self {
            schedule: Histogram::new(BOUNDS),
            states: Arc::default(),
            decisions: Gauge::default(),
            misconfigured: Gauge::default(),
            writes: Family::default(),
            removals_held: Counter::default(),
        };
        let Self { schedule, decisions, misconfigured, writes, removals_held, .. } = placements.clone();
        let name = |name: &str| format!("{PREFIX}_{name}");
        registry.register(name("schedule_duration_seconds"), "Time of one run of a Placement's scheduling", schedule);
        registry.register(name("decisions"), "Clusters that decisions of Placements name", decisions);
        registry.register(name("misconfigured"), "Placements that cannot be evaluated", misconfigured);
        registry.register(name("writes"), "Writes of PlacementDecisions and of Placements' status", writes);
        let held = "Runs whose decisions keep clusters that left when many disappeared at once";
        registry.register(name("removals_held"), held, removals_held);
        placements
    }

    pub fn held(&self) {
        self.removals_held.inc();
    }

    pub fn ran(&self, took: Duration) {
        self.schedule.observe(took);
    }

    pub fn wrote(&self, object: Object, operation: Operation) {
        let object = match object {
            Object::Decision => "decision",
            Object::Placement => "placement",
        };
        self.writes.get_or_create(&OfWrite { object, operation: operation.as_str() }).inc();
    }

    /// Sets the number of a Placement's clusters, and whether it cannot be evaluated.
    pub fn settle(&self, key: &Key, clusters: usize, is_misconfigured: bool) {
        let decisions = i64::try_from(clusters).unwrap_or(i64::MAX);
        let state = RunResult { decisions, misconfigured: is_misconfigured.into() };
        let before = self.states.lock().insert(key.clone(), state).unwrap_or_default();
        self.move_from(before, state);
    }

    pub fn forget(&self, key: &Key) {
        let before = self.states.lock().remove(key).unwrap_or_default();
        self.move_from(before, RunResult::default());
    }

    /// Another replica schedules, or none.
    pub fn clear(&self) {
        self.states.lock().clear();
        self.decisions.set(0);
        self.misconfigured.set(0);
    }

    fn move_from(&self, before: RunResult, after: RunResult) {
        self.decisions.inc_by(after.decisions - before.decisions);
        self.misconfigured.inc_by(after.misconfigured - before.misconfigured);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_placement_counts_as_it_was_settled_last() {
        let placements = Placements::register(&mut Registry::default());
        let counts = || (placements.decisions.get(), placements.misconfigured.get());
        let key = |name: &str| ("team".to_owned(), name.to_owned());
        placements.settle(&key("a"), 3, false);
        placements.settle(&key("b"), 2, true);
        assert_eq!(counts(), (5, 1));
        placements.settle(&key("a"), 1, true);
        placements.settle(&key("b"), 2, false);
        assert_eq!(counts(), (3, 1));
        placements.forget(&key("a"));
        placements.forget(&key("never seen"));
        assert_eq!(counts(), (2, 0));
        placements.clear();
        assert_eq!(counts(), (0, 0));
    }
}
