//! Chooses the links on which to try a stream: the one with the fewest streams first, equal ones
//! alternately, none twice.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tunnel::Refusal;

use super::registered::{Cluster, RegisteredLink};

/// Most links to try for one stream. Each of them refused at once without a dial, so further ones
/// would hardly do better.
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
        // `min_by_key` returns the first of several equal links.
        let chosen = fit.min_by_key(|held| held.streams())?;
        self.tried.push(chosen.id);
        Some(Arc::clone(chosen))
    }

    pub(super) fn refused(&mut self, refusal: Refusal) {
        self.refusal = Some(refusal);
    }

    /// The last refusal, if any link sent one.
    pub(super) fn outcome(self) -> Option<Refusal> {
        self.refusal
    }
}
