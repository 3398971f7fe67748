//! The loads of users, or of clusters, by name. Only names with requests in flight are certain to
//! be kept.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use foldhash::quality::RandomState;
use parking_lot::RwLock;

use super::Load;

/// Shards with their own lock. A power of two.
const SHARDS: usize = 64;
/// Names that a shard may keep before it looks for idle ones.
const KEPT: usize = 64;

/// A known name takes only a read lock, so cores wait for each other only when a name is new. So
/// names stay known for some time after their last request, and are forgotten together.
#[derive(Debug)]
pub struct Loads {
    shards: [RwLock<Shard>; SHARDS],
    hasher: RandomState,
}

#[derive(Debug)]
struct Shard {
    /// Clones are made only under the lock.
    loads: HashMap<Box<str>, Arc<Load>, RandomState>,
    /// Most names before the next search for idle ones: twice as many as were busy at the last, so
    /// that a new name costs constant time.
    full: usize,
}

// === impl Loads ===

impl Loads {
    /// The load of `name`: the same one as long as it is held anywhere.
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
        // Another thread may have added the name meanwhile.
        if let Some(load) = self.loads.get(name) {
            return Arc::clone(load);
        }
        if self.loads.len() >= self.full {
            // Without a clone, the name has no request in flight.
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
