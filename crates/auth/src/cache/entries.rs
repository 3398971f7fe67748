//! What a cache holds: answers by key, and calls in flight.
//!
//! Entries leave in the order they came. With one lifetime of seconds for all, the oldest is also
//! the next to expire, and recency would not be worth a second lock or a write per hit.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use foldhash::quality::RandomState;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Outcome;

/// What a kept answer counts as.
pub(super) type WeightFn<K, V> = fn(&K, &V) -> usize;

/// Expired entries removed with each insertion: more than one, so that the cache shrinks after a
/// rush.
const EXPIRED_PER_INSERT: usize = 4;

#[derive(Debug)]
pub(super) struct Entries<K, V> {
    pub(super) slots: HashMap<Arc<K>, Slot<V>, RandomState>,
    /// Keys of `Ready` slots by age. An id that no longer matches its slot is left over from an
    /// earlier entry.
    pub(super) order: VecDeque<Entry<K>>,
    /// Weight of the calls in flight.
    pub(super) pending: usize,
    next_id: u64,
    weigh: WeightFn<K, V>,
    /// Of all in `order`.
    pub(super) weight: usize,
    capacity: usize,
}

#[derive(Debug)]
pub(super) struct Entry<K> {
    key: Arc<K>,
    id: u64,
    weight: usize,
}

#[derive(Debug)]
pub(super) enum Slot<V> {
    Ready {
        value: V,
        expires: Instant,
        /// When it was asked for.
        began: Instant,
        id: u64,
    },
    /// Holds no receiver: each receiver is a caller that waits.
    Pending { outcome: Arc<watch::Sender<Outcome<V>>>, began: Instant, id: u64 },
}

// === impl Slot ===

impl<V> Slot<V> {
    /// What is kept, if it has not expired and was not asked for before `since`.
    pub(super) fn answer(&self, since: Option<Instant>) -> Option<&V> {
        match self {
            Self::Ready { value, expires, began, .. } if Instant::now() < *expires && Some(*began) >= since => {
                Some(value)
            }
            _ => None,
        }
    }

    /// The call in flight, if it did not begin before `since`.
    pub(super) fn call(&self, since: Option<Instant>) -> Option<&watch::Sender<Outcome<V>>> {
        match self {
            Self::Pending { outcome, began, .. } if Some(*began) >= since => Some(outcome),
            _ => None,
        }
    }
}

// === impl Entries ===

impl<K: Hash + Eq, V> Entries<K, V> {
    pub(super) fn new(capacity: usize, weigh: WeightFn<K, V>) -> Self {
        Self { slots: HashMap::default(), order: VecDeque::new(), pending: 0, next_id: 0, weigh, weight: 0, capacity }
    }

    pub(super) fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    pub(super) fn add_pending(
        &mut self,
        key: &Arc<K>,
        outcome: &Arc<watch::Sender<Outcome<V>>>,
        began: Instant,
    ) -> u64 {
        let id = self.new_id();
        self.pending += 1;
        self.slots.insert(Arc::clone(key), Slot::Pending { outcome: Arc::clone(outcome), began, id });
        id
    }

    /// Does nothing once the slot is another's, or `Ready`.
    pub(super) fn remove_pending(&mut self, key: &K, id: u64) {
        if matches!(self.slots.get(key), Some(Slot::Pending { id: own, .. }) if *own == id) {
            self.slots.remove(key);
        }
    }

    pub(super) fn add_ready(&mut self, key: Arc<K>, id: u64, value: V, lifetime: Duration, began: Instant) {
        let now = Instant::now();
        let weight = (self.weigh)(&key, &value);
        self.weight += weight;
        self.order.push_back(Entry { key: Arc::clone(&key), id, weight });
        self.slots.insert(key, Slot::Ready { value, expires: now + lifetime, began, id });
        let mut expired = 0;
        while let Some(oldest) = self.order.front() {
            let current = match self.slots.get(&oldest.key) {
                Some(Slot::Ready { expires, id, .. }) if *id == oldest.id => Some(*expires),
                _ => None,
            };
            let is_over = current.is_none_or(|expires| expires <= now);
            if self.weight <= self.capacity && (!is_over || expired == EXPIRED_PER_INSERT) {
                break;
            }
            expired += usize::from(is_over);
            self.remove_oldest(current.is_some());
        }
    }

    fn remove_oldest(&mut self, is_current: bool) {
        if let Some(oldest) = self.order.pop_front() {
            self.weight -= oldest.weight;
            if is_current {
                self.slots.remove(&oldest.key);
            }
        }
    }
}
