//! One call in flight: until it ends, or until its last waiter leaves.

use std::hash::Hash;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::entries::Entries;
use super::{Loaded, Outcome};
use crate::review::ReviewProgress;

/// How long a call at the hub goes on without waiters. Ending it breaks its connection (HTTP/1.1
/// has no other way), so callers that come and go at once would cost a TLS handshake each. This
/// bounds both: handshakes to the number of permits a second, and the time that an abandoned call
/// holds its permit.
pub(super) const ABANDONED_GRACE: Duration = Duration::from_secs(1);

/// Dropped without landing (given up, its task panicked or was shut down), it clears its slot.
pub(super) struct Flight<K: Hash + Eq, V> {
    pub(super) entries: Arc<Mutex<Entries<K, V>>>,
    /// Whose share of the cache it counts against.
    pub(super) owner: Option<Arc<str>>,
    /// The slot of a shared call.
    pub(super) own: Option<(Arc<K>, u64)>,
    pub(super) began: Instant,
    pub(super) weight: usize,
    /// Its receivers are the callers that wait.
    pub(super) outcome: Arc<watch::Sender<Outcome<V>>>,
}

// === impl Flight ===

impl<K: Hash + Eq, V: Clone> Flight<K, V> {
    /// Runs `load`, which says by `progress` how far it is.
    pub(super) async fn fly<F: Future<Output = Loaded<V>>>(self, progress: ReviewProgress, load: F) {
        let mut load = pin!(load);
        loop {
            tokio::select! {
                // First, so that a call whose caller has gone before it began never begins.
                biased;
                () = self.outcome.closed() => {}
                loaded = &mut load => return self.land(loaded),
            }
            if progress.is_at_hub()
                && let Ok(loaded) = timeout(ABANDONED_GRACE, &mut load).await
            {
                return self.land(loaded);
            }
            if self.is_abandoned() {
                return;
            }
        }
    }

    /// Callers join under the same lock, so none can join a call that was found abandoned.
    fn is_abandoned(&self) -> bool {
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
        if let (Ok((value, lifetime)), Some((key, _))) = (&loaded, &self.own)
            && !lifetime.is_zero()
        {
            let (key, owner) = (Arc::clone(key), self.owner.clone());
            self.entries.lock().add_ready(key, owner, value.clone(), *lifetime, self.began);
        }
        // Before the callers know: the next one to ask finds no call that is over.
        drop(self);
        let _ = outcome.send(Some(loaded.map(|(value, _)| value))); // nobody may be waiting any more
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
