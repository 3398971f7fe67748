//! A gauge by groups in which each thing counts once: in its latest group.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::wakes::Key;

/// Clones share their values.
#[derive(Debug)]
pub struct Tally<K, G> {
    groups: Arc<Mutex<HashMap<K, G>>>,
    count: Family<G, Gauge>,
}

/// What becomes of objects of one kind.
pub trait ObjectState: Copy {
    fn as_str(self) -> &'static str;
}

/// Objects by what became of them. Clones count together.
#[derive(Debug)]
pub struct States<S, K = Key> {
    tally: Tally<K, OfState>,
    of: PhantomData<fn(S)>,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct OfState {
    state: &'static str,
}

// === impl States ===

impl<S, K> Clone for States<S, K> {
    fn clone(&self) -> Self {
        Self { tally: self.tally.clone(), of: PhantomData }
    }
}

impl<S, K> Default for States<S, K> {
    fn default() -> Self {
        Self { tally: Tally::default(), of: PhantomData }
    }
}

impl<S: ObjectState, K: Hash + Eq> States<S, K> {
    /// What is registered.
    pub fn family(&self) -> Family<OfState, Gauge> {
        self.tally.family()
    }

    /// Says what became of one. True if that is news.
    pub fn settle(&self, key: K, state: S) -> bool {
        self.tally.put(key, &OfState { state: state.as_str() })
    }

    pub fn forget(&self, key: &K) {
        self.tally.forget(key);
    }

    /// Another replica counts, or none.
    pub fn clear(&self) {
        self.tally.clear();
    }

    #[cfg(test)]
    pub fn count(&self, state: S) -> i64 {
        self.family().get_or_create(&OfState { state: state.as_str() }).get()
    }
}

// === impl Tally ===

impl<K, G> Clone for Tally<K, G> {
    fn clone(&self) -> Self {
        Self { groups: Arc::clone(&self.groups), count: self.count.clone() }
    }
}

impl<K, G: Clone + Hash + Eq> Default for Tally<K, G> {
    fn default() -> Self {
        Self { groups: Arc::default(), count: Family::default() }
    }
}

impl<K, G> Tally<K, G>
where
    K: Hash + Eq,
    G: Clone + Hash + Eq + Debug + EncodeLabelSet,
{
    /// The family to register.
    pub fn family(&self) -> Family<G, Gauge> {
        self.count.clone()
    }

    /// Puts a thing into a group. Returns true if that is a change.
    pub fn put(&self, key: K, group: &G) -> bool {
        let mut groups = self.groups.lock();
        let before = groups.insert(key, group.clone());
        if before.as_ref() == Some(group) {
            return false;
        }
        self.count.get_or_create(group).inc();
        self.leave(before);
        true
    }

    pub fn forget(&self, key: &K) {
        let before = self.groups.lock().remove(key);
        self.leave(before);
    }

    /// Another replica counts, or none.
    pub fn clear(&self) {
        self.groups.lock().clear();
        self.count.clear();
    }

    fn leave(&self, group: Option<G>) {
        if let Some(group) = group {
            self.count.get_or_create(&group).dec();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counts_once_also_after_a_new_beginning() {
        let tally = Tally::<&str, [(&str, &str); 1]>::default();
        let of = |state| [("state", state)];
        let count = |state| tally.family().get_or_create(&of(state)).get();
        assert!(tally.put("a", &of("new")) && tally.put("b", &of("new")));
        assert!(!tally.put("b", &of("new")), "no news");
        assert!(tally.put("a", &of("old")));
        assert_eq!((count("new"), count("old")), (1, 1));
        tally.forget(&"b");
        tally.forget(&"never seen");
        assert_eq!(count("new"), 0);
        tally.clear();
        tally.put("a", &of("new"));
        assert_eq!((count("new"), count("old")), (1, 0));
    }
}
