//! A small map with lookups without a lock: entries are only added, each after the last.
//!
//! For lookups by every request on every core, with a dozen keys: a search through a dozen entries
//! costs less than the hash of one key, and cores wait for each other only while an entry is made.

use std::sync::OnceLock;

/// See the module's text.
#[derive(Debug)]
pub struct Ledger<K, V> {
    first: OnceLock<Box<Entry<K, V>>>,
}

#[derive(Debug)]
struct Entry<K, V> {
    key: K,
    value: V,
    rest: Ledger<K, V>,
}

// === impl Ledger ===

impl<K: Copy + Eq, V> Ledger<K, V> {
    /// Returns the value of `key`, and makes it if it is new and fewer than `most` are known.
    /// `None` if there is no room for it.
    pub fn get_or_add(&self, most: usize, key: K, make: impl Fn() -> V) -> Option<&V> {
        let mut ledger = self;
        for _ in 0..most {
            // The first thread makes the entry, for its own key. The others check whether it is
            // theirs too.
            let entry = ledger.first.get_or_init(|| Box::new(Entry { key, value: make(), rest: Self::default() }));
            if entry.key == key {
                return Some(&entry.value);
            }
            ledger = &entry.rest;
        }
        None
    }

    /// The value of `key`, if it is known.
    pub fn get(&self, key: K) -> Option<&V> {
        self.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    pub fn keys(&self) -> impl Iterator<Item = K> {
        self.iter().map(|(key, _)| key)
    }

    /// Ordered as they were added.
    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        let entries = std::iter::successors(self.first.get(), |entry| entry.rest.first.get());
        entries.map(|entry| (entry.key, &entry.value))
    }
}

impl<K, V> Default for Ledger<K, V> {
    fn default() -> Self {
        Self { first: OnceLock::new() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_key_keeps_its_value_and_too_many_are_refused() {
        let ledger = Ledger::default();
        assert_eq!(ledger.get('a'), None);
        assert_eq!(ledger.get_or_add(2, 'a', || 1), Some(&1));
        assert_eq!(ledger.get('a'), Some(&1));
        assert_eq!(ledger.get_or_add(2, 'b', || 2), Some(&2));
        assert_eq!(ledger.get_or_add(2, 'c', || 3), None);
        assert_eq!(ledger.get_or_add(2, 'a', || 4), Some(&1));
        assert_eq!(ledger.keys().collect::<String>(), "ab");
        assert_eq!(ledger.get_or_add(3, 'c', || 3), Some(&3));
    }

    #[test]
    fn all_who_come_at_once_get_the_same_value() {
        let ledger: Ledger<u32, AtomicU32> = Ledger::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for number in 0..2_000 {
                        let count = ledger.get_or_add(20, number % 20, AtomicU32::default).expect("room");
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(ledger.keys().count(), 20);
        for key in 0..20 {
            let count = ledger.get_or_add(20, key, AtomicU32::default).expect("known");
            assert_eq!(count.load(Ordering::Relaxed), 400);
        }
    }
}
