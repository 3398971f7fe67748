//! Answers of the hub, kept for seconds: bounded, and asked for once however many callers want the same at once.
//!
//! Callers live on several single-threaded runtimes, while the hub's client belongs to one: the shared call is a task of
//! that runtime, so it also survives the caller that started it. A lookup takes one short lock. A failed call is forgotten.
//!
//! Entries leave in the order they came. With one lifetime of seconds for all, the oldest is also the next to expire, and
//! recency would not be worth a second lock or a write per hit.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::review::ReviewError;

/// Answers kept (`--authorization-webhook` caches of kube-apiserver hold 8,192).
const CAPACITY: usize = 8192;
/// Calls in flight or queued for the hub; further ones are turned away.
const MAX_PENDING: usize = 4096;
/// Expired entries removed with each insertion: more than one, so that the cache shrinks after a rush.
const EXPIRED_PER_INSERT: usize = 4;

/// An answer and how long it may be kept. Zero: only for those who wait for it now.
pub(crate) type Loaded<V> = Result<(V, Duration), ReviewError>;

type Outcome<V> = Option<Result<V, ReviewError>>;

#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    entries: Arc<Mutex<Entries<K, V>>>,
    runtime: Handle,
}

#[derive(Debug)]
struct Entries<K, V> {
    slots: HashMap<Arc<K>, Slot<V>>,
    /// Keys of `Ready` slots by age. An id that no longer matches its slot is left over from an earlier entry.
    order: VecDeque<(Arc<K>, u64)>,
    pending: usize,
    next_id: u64,
}

#[derive(Debug)]
enum Slot<V> {
    Ready { value: V, expires: Instant, id: u64 },
    Pending { outcome: watch::Receiver<Outcome<V>>, id: u64 },
}

/// The call of a `Pending` slot. Dropped without landing (its task panicked or was shut down), it clears the slot.
struct Flight<K: Hash + Eq, V> {
    entries: Arc<Mutex<Entries<K, V>>>,
    key: Arc<K>,
    id: u64,
}

/// How a caller finds its key.
enum Joined<K: Hash + Eq, V> {
    Ready(V),
    Waiting(watch::Receiver<Outcome<V>>),
    First(watch::Receiver<Outcome<V>>, Flight<K, V>, watch::Sender<Outcome<V>>),
}

// === impl Cache ===

impl<K, V> Cache<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Calls to load a value run as tasks of `runtime`.
    pub(crate) fn new(runtime: Handle) -> Self {
        let entries = Entries { slots: HashMap::new(), order: VecDeque::new(), pending: 0, next_id: 0 };
        Self { entries: Arc::new(Mutex::new(entries)), runtime }
    }

    /// The kept answer, if it has not expired.
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        match self.entries.lock().slots.get(key) {
            Some(Slot::Ready { value, expires, .. }) if Instant::now() < *expires => Some(value.clone()),
            _ => None,
        }
    }

    /// The kept answer, or that of the call already under way, or that of a new call `load`.
    pub(crate) async fn get_or_load<F>(&self, key: Arc<K>, load: impl FnOnce() -> F) -> Result<V, ReviewError>
    where
        F: Future<Output = Loaded<V>> + Send + 'static,
    {
        let (mut outcome, departure) = match self.join(key)? {
            Joined::Ready(value) => return Ok(value),
            Joined::Waiting(outcome) => (outcome, None),
            Joined::First(outcome, flight, sender) => (outcome, Some((flight, sender))),
        };
        // Not under the lock: a runtime that is shut down drops the task, and its `Flight`, at once.
        if let Some((flight, sender)) = departure {
            let load = load();
            self.runtime.spawn(async move {
                let landed = flight.land(load.await);
                let _ = sender.send(Some(landed)); // nobody may be waiting any more
            });
        }
        // The sender goes only with its task.
        let outcome = outcome.wait_for(Option::is_some).await.map_err(|_| ReviewError::Lost)?;
        outcome.clone().unwrap_or(Err(ReviewError::Lost))
    }

    /// A call whose answer is neither kept nor shared, but runs where the shared ones do.
    pub(crate) async fn load_alone<F>(&self, load: F) -> Result<V, ReviewError>
    where
        F: Future<Output = Loaded<V>> + Send + 'static,
    {
        let loaded = self.runtime.spawn(load).await.map_err(|_| ReviewError::Lost)?;
        loaded.map(|(value, _)| value)
    }

    fn join(&self, key: Arc<K>) -> Result<Joined<K, V>, ReviewError> {
        let mut entries = self.entries.lock();
        match entries.slots.get(&key) {
            Some(Slot::Ready { value, expires, .. }) if Instant::now() < *expires => {
                return Ok(Joined::Ready(value.clone()));
            }
            Some(Slot::Pending { outcome, .. }) => return Ok(Joined::Waiting(outcome.clone())),
            _ if entries.pending >= MAX_PENDING => return Err(ReviewError::Busy),
            _ => {}
        }
        let (sender, outcome) = watch::channel(None);
        let id = entries.add_pending(&key, &outcome);
        drop(entries);
        let flight = Flight { entries: Arc::clone(&self.entries), key, id };
        Ok(Joined::First(outcome, flight, sender))
    }
}

// === impl Entries ===

impl<K: Hash + Eq, V> Entries<K, V> {
    fn add_pending(&mut self, key: &Arc<K>, outcome: &watch::Receiver<Outcome<V>>) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.pending += 1;
        self.slots.insert(Arc::clone(key), Slot::Pending { outcome: outcome.clone(), id });
        id
    }

    fn remove_pending(&mut self, key: &K, id: u64) {
        if matches!(self.slots.get(key), Some(Slot::Pending { id: own, .. }) if *own == id) {
            self.slots.remove(key);
            self.pending -= 1;
        }
    }

    fn add_ready(&mut self, key: Arc<K>, id: u64, value: V, lifetime: Duration) {
        let now = Instant::now();
        self.order.push_back((Arc::clone(&key), id));
        self.slots.insert(key, Slot::Ready { value, expires: now + lifetime, id });
        for _ in 0..EXPIRED_PER_INSERT {
            let Some((key, id)) = self.order.front() else { break };
            let current = match self.slots.get(key) {
                Some(Slot::Ready { expires, id: own, .. }) if own == id => Some(*expires),
                _ => None,
            };
            if self.order.len() <= CAPACITY && current.is_some_and(|expires| now < expires) {
                break;
            }
            if let Some((key, _)) = self.order.pop_front()
                && current.is_some()
            {
                self.slots.remove(&key);
            }
        }
    }
}

// === impl Flight ===

impl<K: Hash + Eq, V: Clone> Flight<K, V> {
    fn land(self, loaded: Loaded<V>) -> Result<V, ReviewError> {
        let mut entries = self.entries.lock();
        entries.remove_pending(&self.key, self.id);
        let (value, lifetime) = loaded?;
        if !lifetime.is_zero() {
            entries.add_ready(Arc::clone(&self.key), self.id, value.clone(), lifetime);
        }
        drop(entries);
        Ok(value)
    }
}

impl<K: Hash + Eq, V> Drop for Flight<K, V> {
    fn drop(&mut self) {
        self.entries.lock().remove_pending(&self.key, self.id);
    }
}

#[cfg(test)]
mod tests;
