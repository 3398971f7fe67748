//! The input of one run, copied out of the world so that the run need not lock it.

use std::collections::BTreeMap;
use std::sync::Arc;

use placement::conditions::decided_generation;
use placement::index::{Decisions, Scores};
use placement::objects::{ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding};
use placement::{Input, Prepared};
use time::OffsetDateTime;

use super::{ObservedPlacement, World};

pub struct Snapshot {
    /// The Placement's count of input changes at the snapshot.
    pub inputs: u64,
    placement: Arc<Prepared>,
    bindings: Vec<ManagedClusterSetBinding>,
    sets: Vec<Arc<ManagedClusterSet>>,
    clusters: Vec<Arc<ManagedCluster>>,
    scores: Arc<Scores>,
    decisions: Arc<Decisions>,
    decided_generation: Option<i64>,
}

// === impl World ===

impl World {
    pub fn snapshot(&self, known: &ObservedPlacement) -> Snapshot {
        let bindings = self.bindings.get(&known.key.0).into_iter().flat_map(BTreeMap::values);
        let sets = bindings.clone().filter_map(|binding| Some(Arc::clone(&self.sets.get(&binding.name)?.set)));
        let sets: Vec<_> = sets.collect();
        let borrowed: Vec<_> = sets.iter().map(Arc::as_ref).collect();
        let clusters = self.looked_at(known, &borrowed).into_iter().cloned().collect();
        Snapshot {
            inputs: known.inputs,
            placement: Arc::clone(&known.prepared),
            sets,
            bindings: bindings.cloned().collect(),
            clusters,
            scores: Arc::clone(&self.scores),
            decisions: Arc::clone(&self.decisions),
            decided_generation: decided_generation(&known.status),
        }
    }
}

// === impl Snapshot ===

impl Snapshot {
    /// Whether the Placement's spec is unchanged. A change of other input causes another run
    /// anyway.
    pub fn is_of(&self, known: &ObservedPlacement) -> bool {
        Arc::ptr_eq(&self.placement, &known.prepared)
    }

    pub fn with_input<T>(&self, now: OffsetDateTime, run: impl FnOnce(&Input<'_>) -> T) -> T {
        let sets: Vec<_> = self.sets.iter().map(Arc::as_ref).collect();
        let bindings: Vec<_> = self.bindings.iter().collect();
        let clusters: Vec<_> = self.clusters.iter().map(Arc::as_ref).collect();
        run(&Input {
            placement: &self.placement,
            sets: &sets,
            bindings: &bindings,
            clusters: &clusters,
            scores: &self.scores,
            decisions: &self.decisions,
            decided_generation: self.decided_generation,
            now,
        })
    }
}
