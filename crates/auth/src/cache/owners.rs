//! What each owner has in a cache. Only those are known who have something.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use foldhash::quality::RandomState;

#[derive(Debug, Default)]
pub(super) struct Owners(HashMap<Arc<str>, OwnerUse, RandomState>);

#[derive(Debug, Default)]
struct OwnerUse {
    /// Weight of the calls in flight.
    pending: usize,
    /// Weight of the kept answers.
    kept: usize,
    /// Ids of the kept answers, by age.
    ready: VecDeque<u64>,
}

// === impl Owners ===

impl Owners {
    pub(super) fn pending(&self, owner: &str) -> usize {
        self.0.get(owner).map_or(0, |held| held.pending)
    }

    pub(super) fn begins(&mut self, owner: &Arc<str>, weight: usize) {
        self.0.entry(Arc::clone(owner)).or_default().pending += weight;
    }

    pub(super) fn ends(&mut self, owner: &str, weight: usize) {
        self.change(owner, |held| held.pending = held.pending.saturating_sub(weight));
    }

    pub(super) fn keeps(&mut self, owner: &Arc<str>, id: u64, weight: usize) {
        let held = self.0.entry(Arc::clone(owner)).or_default();
        held.kept += weight;
        held.ready.push_back(id);
    }

    /// Its oldest answer, if its answers weigh more than `most`.
    pub(super) fn oldest_beyond(&self, owner: &str, most: usize) -> Option<u64> {
        self.0.get(owner).filter(|held| held.kept > most)?.ready.front().copied()
    }

    /// Its oldest answer is kept no longer.
    pub(super) fn loses_oldest(&mut self, owner: &str, weight: usize) {
        self.change(owner, |held| {
            held.kept = held.kept.saturating_sub(weight);
            held.ready.pop_front();
        });
    }

    fn change(&mut self, owner: &str, change: impl FnOnce(&mut OwnerUse)) {
        let Some(held) = self.0.get_mut(owner) else { return };
        change(held);
        if held.pending == 0 && held.ready.is_empty() {
            self.0.remove(owner);
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
