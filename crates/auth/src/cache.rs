//! Caches the hub's answers for seconds: bounded, and with one call for all callers that want the
//! same answer at once.
//!
//! Callers run on several single-threaded runtimes, but the hub's client belongs to one. So the
//! shared call is a task of that runtime, and survives the caller that started it while others
//! wait. A lookup takes one short lock. A failed call is not cached, and a call without waiters is
//! abandoned.

mod entries;
mod flight;
mod owners;
mod sweep;

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

use self::entries::Entries;
use self::flight::Flight;
use crate::review::{ReviewError, ReviewProgress};

/// What an entry takes beside its texts: key, slot, places in map and queue, and what the allocator
/// adds.
pub(crate) const ENTRY: usize = 512;

/// An answer and its lifetime in the cache. Zero: only for the callers that wait for it now.
pub type Loaded<V> = Result<(V, Duration), ReviewError>;

type Outcome<V> = Option<Result<V, ReviewError>>;

/// See the module. Also caches answers of the hub about other things than users.
#[derive(Debug)]
pub struct Cache<K, V> {
    entries: Arc<Mutex<Entries<K, V>>>,
    runtime: Handle,
}

/// What a cache may hold, or one owner in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most answers cached: their number, or their total weight if they are weighed.
    pub kept: usize,
    /// Most calls in flight or queued for the hub; more are rejected.
    pub pending: usize,
}

/// What a caller finds for its key.
enum Lookup<K: Hash + Eq, V> {
    Ready(V),
    Waiting(watch::Receiver<Outcome<V>>),
    First(watch::Receiver<Outcome<V>>, Flight<K, V>),
}

// === impl Limits ===

impl Limits {
    /// Most calls about users.
    pub(crate) const PENDING_OF_USERS: usize = 4096;
    /// For owners that share with no other.
    const NONE: Self = Self { kept: usize::MAX, pending: usize::MAX };

    /// For answers about users of which as many are kept.
    pub(crate) const fn of_users(kept: usize) -> Self {
        Self { kept, pending: Self::PENDING_OF_USERS }
    }
}

// === impl Cache ===

impl<K, V> Cache<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Runs calls that load a value as tasks of `runtime`.
    pub fn new(runtime: Handle, limits: Limits) -> Self {
        Self::weighing(runtime, limits, Limits::NONE, |_, _| 1)
    }

    /// Keeps as many answers as weigh `limits.kept` together, and of each owner as many as weigh
    /// `of_one.kept`.
    pub(crate) fn weighing(runtime: Handle, limits: Limits, of_one: Limits, weigh: fn(&K, &V) -> usize) -> Self {
        Self { entries: Arc::new(Mutex::new(Entries::new(limits, of_one, weigh))), runtime }
    }

    /// The cached answer, if it has not expired.
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.get_since(key, None)
    }

    /// The cached answer, if it has not expired and was requested at `since` or later.
    pub(crate) fn get_since(&self, key: &K, since: Option<Instant>) -> Option<V> {
        self.entries.lock().slots.get(key).and_then(|slot| slot.answer(since)).cloned()
    }

    /// Keeps an answer for `owner` that was found in another way than by a call of this cache.
    pub(crate) fn put(&self, key: K, owner: Arc<str>, value: V, lifetime: Duration) {
        let is_unswept = self.entries.lock().keep(Arc::new(key), Some(owner), (value, lifetime), Instant::now());
        if is_unswept {
            sweep::start(&self.entries, &self.runtime);
        }
    }

    /// Returns the cached answer, or that of the call in flight, or that of a new call `load`,
    /// which reports its progress.
    pub async fn get_or_load<F>(&self, key: Arc<K>, load: impl FnOnce(ReviewProgress) -> F) -> Result<V, ReviewError>
    where
        F: Future<Output = Loaded<V>> + Send + 'static,
    {
        self.get_or_load_for(None, key, None, load).await
    }

    /// The same for `owner`, of answers and calls that were asked for at `since` or later only: the
    /// others may say what was true before.
    pub(crate) async fn get_or_load_for<F>(
        &self,
        owner: Option<Arc<str>>,
        key: Arc<K>,
        since: Option<Instant>,
        load: impl FnOnce(ReviewProgress) -> F,
    ) -> Result<V, ReviewError>
    where
        F: Future<Output = Loaded<V>> + Send + 'static,
    {
        match self.join(owner, key, since)? {
            Lookup::Ready(value) => Ok(value),
            Lookup::Waiting(outcome) => outcome_of(outcome).await,
            Lookup::First(outcome, flight) => {
                self.start(flight, load);
                outcome_of(outcome).await
            }
        }
    }

    /// A call whose answer is neither cached nor shared. It runs like the shared ones, and counts
    /// as `weight` of them.
    pub(crate) async fn load_alone<F>(
        &self,
        owner: Option<Arc<str>>,
        weight: usize,
        load: impl FnOnce(ReviewProgress) -> F,
    ) -> Result<V, ReviewError>
    where
        F: Future<Output = Loaded<V>> + Send + 'static,
    {
        let (outcome, flight) = {
            let mut entries = self.entries.lock();
            entries.begin(owner.as_ref(), weight)?;
            let (sender, outcome) = watch::channel(None);
            let (entries, outcome_of_call) = (Arc::clone(&self.entries), Arc::new(sender));
            (outcome, Flight { entries, owner, own: None, began: Instant::now(), weight, outcome: outcome_of_call })
        };
        self.start(flight, load);
        outcome_of(outcome).await
    }

    fn join(&self, owner: Option<Arc<str>>, key: Arc<K>, since: Option<Instant>) -> Result<Lookup<K, V>, ReviewError> {
        let mut entries = self.entries.lock();
        let slot = entries.slots.get(&key);
        if let Some(value) = slot.and_then(|slot| slot.answer(since)) {
            return Ok(Lookup::Ready(value.clone()));
        }
        if let Some(outcome) = slot.and_then(|slot| slot.call(since)) {
            return Ok(Lookup::Waiting(outcome.subscribe()));
        }
        entries.begin(owner.as_ref(), 1)?;
        let (sender, outcome) = watch::channel(None);
        let sender = Arc::new(sender);
        let began = Instant::now();
        let id = entries.add_pending(&key, &sender, began);
        drop(entries);
        let (entries, own) = (Arc::clone(&self.entries), Some((key, id)));
        Ok(Lookup::First(outcome, Flight { entries, owner, own, began, weight: 1, outcome: sender }))
    }

    /// Not under the lock: a runtime that is shut down drops the task and its `Flight` at once.
    fn start<F>(&self, flight: Flight<K, V>, load: impl FnOnce(ReviewProgress) -> F)
    where
        F: Future<Output = Loaded<V>> + Send + 'static,
    {
        let progress = ReviewProgress::default();
        let load = load(progress.clone());
        self.runtime.spawn(flight.fly(progress, load));
    }
}

/// The sender is only dropped with the call's task.
async fn outcome_of<V: Clone>(mut outcome: watch::Receiver<Outcome<V>>) -> Result<V, ReviewError> {
    let outcome = outcome.wait_for(Option::is_some).await.map_err(|_| ReviewError::Lost)?;
    outcome.clone().unwrap_or(Err(ReviewError::Lost))
}

#[cfg(test)]
mod tests;
