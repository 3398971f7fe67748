//! The contents of a cache: answers by key, and calls in flight.
//!
//! Entries leave in the order they came. With one lifetime of seconds for all, the oldest is also
//! the next to expire, and recency would not be worth a second lock or a write per hit. Entries of
//! an owner that has more than its share leave before those of others.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use foldhash::quality::RandomState;
use tokio::sync::watch;
use tokio::time::Instant;

use super::owners::Owners;
use super::{Limits, Outcome};
use crate::review::{ReviewError, TooManyReviews};

/// The weight of a cached answer.
pub(super) type WeightFn<K, V> = fn(&K, &V) -> usize;

/// Most expired entries removed with each insertion: more than one, so that the cache shrinks after
/// a burst.
const EXPIRED_PER_INSERT: usize = 4;

#[derive(Debug)]
pub(super) struct Entries<K, V> {
    pub(super) slots: HashMap<Arc<K>, Slot<V>, RandomState>,
    /// Keys of `Ready` slots by id, and so by age. An id that no longer matches its slot is left
    /// over from an earlier entry.
    pub(super) order: BTreeMap<u64, Entry<K>>,
    /// Weight of the calls in flight.
    pub(super) pending: usize,
    next_id: u64,
    weigh: WeightFn<K, V>,
    /// Total weight of `order`.
    pub(super) weight: usize,
    limits: Limits,
    pub(super) owners: Owners,
    of_one: Limits,
    /// Whether a task drops expired answers ([`sweep`](super::sweep)).
    pub(super) is_swept: bool,
}

#[derive(Debug)]
pub(super) struct Entry<K> {
    key: Arc<K>,
    owner: Option<Arc<str>>,
    weight: usize,
}

#[derive(Debug)]
pub(super) enum Slot<V> {
    Ready {
        value: V,
        expires: Instant,
        /// Time of the request for it.
        began: Instant,
        id: u64,
    },
    /// Holds no receiver, because each receiver is a waiting caller.
    Pending { outcome: Arc<watch::Sender<Outcome<V>>>, began: Instant, id: u64 },
}

// === impl Slot ===

impl<V> Slot<V> {
    /// The cached answer, if it has not expired and was not requested before `since`.
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
    pub(super) fn new(limits: Limits, of_one: Limits, weigh: WeightFn<K, V>) -> Self {
        Self {
            slots: HashMap::default(),
            order: BTreeMap::new(),
            pending: 0,
            next_id: 0,
            weigh,
            weight: 0,
            limits,
            owners: Owners::default(),
            of_one,
            is_swept: false,
        }
    }

    fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// One more call in flight. Those already there may be more than the limit by the weight of the
    /// last one let in.
    pub(super) fn begin(&mut self, owner: Option<&Arc<str>>, weight: usize) -> Result<(), ReviewError> {
        if let Some(owner) = owner {
            let most = self.of_one.pending;
            if self.owners.pending(owner) >= most {
                return Err(ReviewError::Busy(TooManyReviews::OfOne { owner: Arc::clone(owner), most }));
            }
        }
        if self.pending >= self.limits.pending {
            return Err(ReviewError::Busy(TooManyReviews::OfAll));
        }
        self.pending += weight;
        if let Some(owner) = owner {
            self.owners.begins(owner, weight);
        }
        Ok(())
    }

    pub(super) fn end(&mut self, owner: Option<&Arc<str>>, weight: usize) {
        self.pending = self.pending.saturating_sub(weight);
        if let Some(owner) = owner {
            self.owners.ends(owner, weight);
        }
    }

    /// The slot of a call that has begun.
    pub(super) fn add_pending(
        &mut self,
        key: &Arc<K>,
        outcome: &Arc<watch::Sender<Outcome<V>>>,
        began: Instant,
    ) -> u64 {
        let id = self.new_id();
        self.slots.insert(Arc::clone(key), Slot::Pending { outcome: Arc::clone(outcome), began, id });
        id
    }

    /// Does nothing if the slot belongs to another call, or is `Ready`.
    pub(super) fn remove_pending(&mut self, key: &K, id: u64) {
        if matches!(self.slots.get(key), Some(Slot::Pending { id: own, .. }) if *own == id) {
            self.slots.remove(key);
        }
    }

    /// Keeps an answer for its lifetime, if that is not zero. Returns whether a task must be
    /// started that drops expired answers.
    pub(super) fn keep(
        &mut self,
        key: Arc<K>,
        owner: Option<Arc<str>>,
        (value, lifetime): (V, Duration),
        began: Instant,
    ) -> bool {
        if lifetime.is_zero() {
            return false;
        }
        let now = Instant::now();
        let (id, weight) = (self.new_id(), (self.weigh)(&key, &value));
        self.weight += weight;
        if let Some(owner) = &owner {
            self.owners.keeps(owner, id, weight);
        }
        self.order.insert(id, Entry { key: Arc::clone(&key), owner: owner.clone(), weight });
        self.slots.insert(key, Slot::Ready { value, expires: now + lifetime, began, id });
        if let Some(owner) = owner {
            while let Some(oldest) = self.owners.oldest_beyond(&owner, self.of_one.kept) {
                self.remove(oldest);
            }
        }
        while self.weight > self.limits.kept
            && let Some((oldest, _)) = self.oldest()
        {
            self.remove(oldest);
        }
        self.drop_expired(EXPIRED_PER_INSERT, now);
        !std::mem::replace(&mut self.is_swept, true)
    }

    /// The id of the oldest entry and the time when it expires; without a time if a newer one has
    /// replaced it.
    fn oldest(&self) -> Option<(u64, Option<Instant>)> {
        let (&oldest, entry) = self.order.first_key_value()?;
        let expires = match self.slots.get(&entry.key) {
            Some(Slot::Ready { expires, id, .. }) if *id == oldest => Some(*expires),
            _ => None,
        };
        Some((oldest, expires))
    }

    /// Drops the oldest entries that have expired, at most this many. Returns when to come again;
    /// `None` if no entry is left.
    pub(super) fn drop_expired(&mut self, most: usize, now: Instant) -> Option<Instant> {
        for _ in 0..most {
            match self.oldest()? {
                (_, Some(expires)) if expires > now => return Some(expires),
                (oldest, _) => self.remove(oldest),
            }
        }
        Some(now)
    }

    /// Of the oldest entry of all, or of its owner.
    fn remove(&mut self, oldest: u64) {
        let Some(Entry { key, owner, weight }) = self.order.remove(&oldest) else { return };
        self.weight -= weight;
        if let Some(owner) = &owner {
            self.owners.loses_oldest(owner, weight);
        }
        if matches!(self.slots.get(&key), Some(Slot::Ready { id, .. }) if *id == oldest) {
            self.slots.remove(&key);
        }
    }
}
