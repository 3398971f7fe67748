//! The links one stream is tried on: the one with the fewest streams first, equal ones in turn,
//! none twice.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tunnel::Refusal;

use super::registered::{Cluster, RegisteredLink};

/// Links one stream is tried on at most. Each refused at once, without dialling: more of them would
/// hardly do better.
const MOST: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Attempts {
    tried: Vec<u64>,
    refusal: Option<Refusal>,
}

// === impl Attempts ===

impl Attempts {
    pub(super) fn next(&mut self, cluster: &Cluster) -> Option<Arc<RegisteredLink>> {
        if self.tried.len() == MOST {
            return None;
        }
        let count = cluster.links.len();
        let from = cluster.counts.turn.fetch_add(1, Ordering::Relaxed).checked_rem(count)?;
        let in_turn = cluster.links[from..].iter().chain(&cluster.links[..from]);
        let fit = in_turn.filter(|held| !self.tried.contains(&held.id) && held.link.is_usable());
        // The first of the least: `min_by_key` keeps the earlier of two equal ones.
        let chosen = fit.min_by_key(|held| held.streams())?;
        self.tried.push(chosen.id);
        Some(Arc::clone(chosen))
    }

    pub(super) fn refused(&mut self, refusal: Refusal) {
        self.refusal = Some(refusal);
    }

    /// What the last link that said something said.
    pub(super) fn outcome(self) -> Option<Refusal> {
        self.refusal
    }
}
