//! The input of a run.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use time::OffsetDateTime;

use crate::index::{Decisions, Scores};
use crate::objects::{ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding};
use crate::prepared::Prepared;

/// Everything on which a choice depends. A run reads nothing else, not even a clock.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    pub placement: &'a Prepared,
    pub sets: &'a [&'a ManagedClusterSet],
    /// Bindings of other namespaces do not count.
    pub bindings: &'a [&'a ManagedClusterSetBinding],
    /// In any order; sorted by name is fastest.
    pub clusters: &'a [&'a ManagedCluster],
    pub scores: &'a Scores,
    pub decisions: &'a Decisions,
    /// The generation of the Placement that its existing decisions follow, if that is known.
    pub decided_generation: Option<i64>,
    pub now: OffsetDateTime,
}

/// The clusters in the Placement's own existing decisions, and how often each is there.
#[derive(Debug)]
pub struct Own<'a> {
    counts: HashMap<&'a str, u64, RandomState>,
}

// === impl Own ===

impl<'a> Own<'a> {
    pub fn of(input: &Input<'a>) -> Self {
        let mut counts: HashMap<&str, u64, RandomState> = HashMap::default();
        for decision in input.decisions.of(&input.placement.namespace, &input.placement.name) {
            for cluster in &decision.clusters {
                *counts.entry(cluster).or_default() += 1;
            }
        }
        Self { counts }
    }

    pub fn has(&self, cluster: &str) -> bool {
        self.counts.contains_key(cluster)
    }

    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.counts.keys().copied()
    }

    pub fn count(&self, cluster: &str) -> u64 {
        self.counts.get(cluster).copied().unwrap_or(0)
    }
}
