//! Limits by key: how much one user, cluster or network may have at once. A key that has nothing
//! has no entry, so that memory is bounded by what there is.

mod queues;

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

pub use self::queues::{QueuePermit, Queues};

/// Counts by key, refused at once beyond a limit. Clones count together.
#[derive(Debug)]
pub struct Shares<K: Hash + Eq>(Arc<Mutex<HashMap<K, usize>>>);

/// One of a key's count, given back when dropped.
#[derive(Debug)]
pub struct Share<K: Hash + Eq> {
    of: Shares<K>,
    key: K,
}

// === impl Shares ===

impl<K: Hash + Eq + Clone> Shares<K> {
    /// One more of `key`, if it has fewer than `most`.
    pub fn enter(&self, key: K, most: usize) -> Option<Share<K>> {
        let mut counts = self.0.lock();
        if counts.get(&key).copied().unwrap_or_default() >= most {
            return None;
        }
        *counts.entry(key.clone()).or_default() += 1;
        Some(Share { of: self.clone(), key })
    }
}

impl<K: Hash + Eq> Shares<K> {
    /// How many keys have something.
    pub fn keys(&self) -> usize {
        self.0.lock().len()
    }
}

impl<K: Hash + Eq> Clone for Shares<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Hash + Eq> Default for Shares<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

// === impl Share ===

impl<K: Hash + Eq> Drop for Share<K> {
    fn drop(&mut self) {
        let mut counts = self.of.0.lock();
        if let Some(count) = counts.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_key_is_refused_beyond_its_share_and_forgotten_when_it_has_nothing() {
        let shares = Shares::<&str>::default();
        let mut own: Vec<_> = std::iter::from_fn(|| shares.enter("a", 2)).take(3).collect();
        assert_eq!(own.len(), 2);
        assert!(shares.enter("none", 0).is_none());
        let other = shares.enter("b", 2);
        assert!(other.is_some());
        own.pop();
        assert!(shares.enter("a", 2).is_some(), "given back");
        drop((own, other));
        assert_eq!(shares.keys(), 0);
    }

    #[tokio::test]
    async fn a_key_waits_for_its_own_permits_and_one_that_leaves_is_forgotten() {
        let queues = Queues::new(1);
        let first = queues.enter("a").await;
        let mut second = Box::pin(queues.enter("a"));
        assert!(second.as_mut().now_or_never().is_none(), "beyond its permits");
        assert!(queues.enter("b").now_or_never().is_some(), "another's");
        let left = Box::pin(queues.enter("a"));
        drop(left);
        drop(first);
        drop(second.now_or_never().expect("its turn"));
        assert_eq!(queues.keys(), 0);
    }
}
