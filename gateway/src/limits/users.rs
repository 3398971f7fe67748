//! How many requests each user has under way. Only users who have some are known.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use parking_lot::Mutex;

use super::Kind;

/// Parts with a lock of their own, so that cores seldom meet. A power of two.
const SHARDS: usize = 64;

#[derive(Debug)]
pub struct Users {
    shards: [Mutex<HashMap<Box<str>, Counts>>; SHARDS],
    hasher: RandomState,
}

/// By kind.
type Counts = [u32; 2];

// === impl Users ===

impl Users {
    /// Counts one more request of `user`, if there are less than `most` of its kind.
    pub fn enter(&self, user: &str, kind: Kind, most: u32) -> bool {
        let mut shard = self.shard(user).lock();
        let Some(counts) = shard.get_mut(user) else {
            let mut counts = Counts::default();
            counts[kind as usize] = 1;
            shard.insert(user.into(), counts);
            return true;
        };
        let count = &mut counts[kind as usize];
        let room = *count < most;
        *count += u32::from(room);
        room
    }

    /// Takes back what [`Users::enter`] counted.
    pub fn leave(&self, user: &str, kind: Kind) {
        let mut shard = self.shard(user).lock();
        let Some(counts) = shard.get_mut(user) else { return };
        counts[kind as usize] = counts[kind as usize].saturating_sub(1);
        if *counts == Counts::default() {
            shard.remove(user);
            // A crowd that came and went leaves no empty tables behind.
            if shard.is_empty() {
                shard.shrink_to(16);
            }
        }
    }

    fn shard(&self, user: &str) -> &Mutex<HashMap<Box<str>, Counts>> {
        let hash = self.hasher.hash_one(user);
        &self.shards[usize::try_from(hash % SHARDS as u64).unwrap_or_default()]
    }

    #[cfg(test)]
    pub fn known(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }
}

impl Default for Users {
    fn default() -> Self {
        Self { shards: std::array::from_fn(|_| Mutex::default()), hasher: RandomState::new() }
    }
}
