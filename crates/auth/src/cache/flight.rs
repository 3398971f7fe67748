//! One call in flight, until it ends or its last waiter leaves.

use std::hash::Hash;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::entries::Entries;
use super::{Loaded, Outcome, sweep};
use crate::review::ReviewProgress;

/// How long a call at the hub continues without waiters. Its end breaks its connection (HTTP/1.1
/// has no other way), so callers that come and go at once would cost a TLS handshake each. This
/// bounds both: handshakes to the number of permits per second, and the time for which an abandoned
/// call holds its permit.
pub(super) const ABANDONED_GRACE: Duration = Duration::from_secs(1);

/// Dropped before it lands (abandoned, or its task panicked or was shut down), it clears its slot.
pub(super) struct Flight<K: Hash + Eq, V> {
    pub(super) entries: Arc<Mutex<Entries<K, V>>>,
    /// Whose share of the cache it counts against.
    pub(super) owner: Option<Arc<str>>,
    /// The slot of a shared call.
    pub(super) own: Option<(Arc<K>, u64)>,
    pub(super) began: Instant,
    pub(super) weight: usize,
    /// Its receivers are the waiting callers.
    pub(super) outcome: Arc<watch::Sender<Outcome<V>>>,
}

// === impl Flight ===

impl<K, V> Flight<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Runs `load`, which reports its progress by `progress`.
    pub(super) async fn fly<F: Future<Output = Loaded<V>>>(self, progress: ReviewProgress, load: F) {
        let mut load = pin!(load);
        loop {
            tokio::select! {
                // First, so that a call whose caller has left before the start never starts.
                biased;
                () = self.outcome.closed() => {}
                loaded = &mut load => return self.land(loaded),
            }
            if progress.is_at_hub()
                && let Ok(loaded) = timeout(ABANDONED_GRACE, &mut load).await
            {
                return self.land(loaded);
            }
            if self.forget_if_abandoned() {
                return;
            }
        }
    }

    /// Forgets the call if it has no callers left. Returns whether it did. Callers join under the
    /// same lock, so none can join a call that was found abandoned.
    fn forget_if_abandoned(&self) -> bool {
        let mut entries = self.entries.lock();
        if self.outcome.receiver_count() > 0 {
            return false;
        }
        if let Some((key, id)) = &self.own {
            entries.remove_pending(key, *id);
        }
        true
    }

    fn land(self, loaded: Loaded<V>) {
        let outcome = Arc::clone(&self.outcome);
        if let (Ok(answer), Some((key, _))) = (&loaded, &self.own) {
            let (key, owner) = (Arc::clone(key), self.owner.clone());
            let is_unswept = self.entries.lock().keep(key, owner, answer.clone(), self.began);
            if is_unswept {
                sweep::start(&self.entries, &Handle::current());
            }
        }
        // Before the callers are notified, so that their next requests do not find a finished call.
        drop(self);
        let _ = outcome.send(Some(loaded.map(|(value, _)| value))); // there may be no waiters left
    }
}

impl<K: Hash + Eq, V> Drop for Flight<K, V> {
    fn drop(&mut self) {
        let mut entries = self.entries.lock();
        entries.end(self.owner.as_ref(), self.weight);
        if let Some((key, id)) = &self.own {
            entries.remove_pending(key, *id);
        }
    }
}
