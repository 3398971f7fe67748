//! How much each user, or each cluster, has under way, by name. Only those who have some are sure
//! to be known.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use foldhash::quality::RandomState;
use parking_lot::RwLock;

use super::Load;

/// Parts with a lock of their own. A power of two.
const SHARDS: usize = 64;
/// Names a part may know before it looks which it can forget.
const KEPT: usize = 64;

/// Finding a known name takes a lock that others hold at the same time: cores do not wait for each
/// other but where somebody is new. So names stay known for a while when their last request has
/// ended, and are forgotten together.
#[derive(Debug)]
pub struct Loads {
    shards: [RwLock<Shard>; SHARDS],
    hasher: RandomState,
}

#[derive(Debug)]
struct Shard {
    /// Clones are made under the lock only.
    loads: HashMap<Box<str>, Arc<Load>, RandomState>,
    /// How many may be known before the next look: twice as many as there were busy ones at the
    /// last, so that looking costs a newcomer a constant time.
    full: usize,
}

// === impl Loads ===

impl Loads {
    /// What `name` has under way: the same for as long as anybody holds it.
    pub fn of(&self, name: &str) -> Arc<Load> {
        let shard = self.shard(name);
        if let Some(load) = shard.read().loads.get(name) {
            return Arc::clone(load);
        }
        shard.write().add(name)
    }

    fn shard(&self, name: &str) -> &RwLock<Shard> {
        let hash = self.hasher.hash_one(name);
        &self.shards[usize::try_from(hash % SHARDS as u64).unwrap_or_default()]
    }

    #[cfg(test)]
    pub fn known(&self) -> usize {
        self.shards.iter().map(|shard| shard.read().loads.len()).sum()
    }
}

impl Default for Loads {
    fn default() -> Self {
        Self { shards: std::array::from_fn(|_| RwLock::default()), hasher: RandomState::default() }
    }
}

// === impl Shard ===

impl Shard {
    fn add(&mut self, name: &str) -> Arc<Load> {
        // Somebody may have been faster.
        if let Some(load) = self.loads.get(name) {
            return Arc::clone(load);
        }
        if self.loads.len() >= self.full {
            // Nobody holds a clone, so nobody has a request under way.
            self.loads.retain(|_, load| Arc::strong_count(load) > 1);
            self.full = KEPT.max(2 * self.loads.len());
            self.loads.shrink_to(self.full);
        }
        Arc::clone(self.loads.entry(name.into()).or_default())
    }
}

impl Default for Shard {
    fn default() -> Self {
        Self { loads: HashMap::default(), full: KEPT }
    }
}
