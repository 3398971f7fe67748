//! Drops expired answers of a burst when no others come that would push them out.
//!
//! A task does so while there are answers. It ends with the last one, or with the cache.

use std::hash::Hash;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use super::entries::Entries;

/// Time between two passes. An expired answer leaves within that time, or with the older ones that
/// live longer.
pub(super) const PAUSE: Duration = Duration::from_secs(15);
/// Most answers dropped under one lock, because lookups wait for it.
const AT_ONCE: usize = 256;

/// Starts the task.
pub(super) fn start<K, V>(entries: &Arc<Mutex<Entries<K, V>>>, runtime: &Handle)
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    runtime.spawn(sweep(Arc::downgrade(entries)));
}

async fn sweep<K: Hash + Eq, V>(entries: Weak<Mutex<Entries<K, V>>>) {
    let mut next = Instant::now() + PAUSE;
    loop {
        sleep_until(next).await;
        let now = Instant::now();
        let Some(again) = entries.upgrade().and_then(|entries| pass(&entries, now)) else { return };
        next = if again > now { again.max(now + PAUSE) } else { now };
        yield_now().await;
    }
}

/// Returns when to come again, if ever.
fn pass<K: Hash + Eq, V>(entries: &Mutex<Entries<K, V>>, now: Instant) -> Option<Instant> {
    let mut entries = entries.lock();
    let again = entries.drop_expired(AT_ONCE, now);
    entries.is_swept = again.is_some();
    again
}
