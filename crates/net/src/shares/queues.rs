//! The keys that wait for a share, in their order.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Permits by key, for which later ones wait, first come first served.
#[derive(Debug)]
pub struct Queues<K: Hash + Eq> {
    /// With the number of those that have a permit or wait for one.
    pub(super) of: Mutex<HashMap<K, (Arc<Semaphore>, usize)>>,
    most: usize,
}

/// One of a key's permits, released when dropped.
#[derive(Debug)]
pub struct QueuePermit<'a, K: Hash + Eq> {
    _permit: OwnedSemaphorePermit,
    _guard: KeyGuard<'a, K>,
}

/// Counts as a user of a key's permits, which go with the last user.
#[derive(Debug)]
struct KeyGuard<'a, K: Hash + Eq> {
    queues: &'a Queues<K>,
    key: K,
}

// === impl Queues ===

impl<K: Hash + Eq + Clone> Queues<K> {
    /// With `most` permits for each key.
    pub fn new(most: usize) -> Self {
        Self { of: Mutex::default(), most }
    }

    /// Waits for a permit of `key`.
    pub async fn enter(&self, key: K) -> QueuePermit<'_, K> {
        let (guard, permits) = self.guarded(key);
        QueuePermit { _permit: permits.acquire_owned().await.expect("never closed"), _guard: guard }
    }

    fn guarded(&self, key: K) -> (KeyGuard<'_, K>, Arc<Semaphore>) {
        let mut of = self.of.lock();
        let (permits, count) = of.entry(key.clone()).or_insert_with(|| (Arc::new(Semaphore::new(self.most)), 0));
        *count += 1;
        (KeyGuard { queues: self, key }, Arc::clone(permits))
    }
}

impl<K: Hash + Eq> Queues<K> {
    /// How many keys have a permit, or wait for one.
    pub fn keys(&self) -> usize {
        self.of.lock().len()
    }
}

// === impl KeyGuard ===

impl<K: Hash + Eq> Drop for KeyGuard<'_, K> {
    fn drop(&mut self) {
        let mut of = self.queues.of.lock();
        if let Some((_, count)) = of.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                of.remove(&self.key);
            }
        }
    }
}
