//! A set of the objects that must be looked at, for kube's queue or another loop.
//!
//! Each object is in it once, however often it is pushed, so its size is bounded by the number of
//! objects.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use futures_util::{Stream, stream};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Namespace, empty for kinds without one, and name.
pub type Key = (String, String);

#[derive(Debug, Clone, Default)]
pub struct Wakes(Arc<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    keys: Mutex<BTreeSet<Key>>,
    more: Notify,
}

// === impl Wakes ===

impl Wakes {
    pub fn push(&self, namespace: &str, name: &str) {
        self.0.keys.lock().insert((namespace.to_owned(), name.to_owned()));
        self.0.more.notify_one();
    }

    /// Number of waiting keys.
    pub fn waiting(&self) -> usize {
        self.0.keys.lock().len()
    }

    /// The next key, as soon as there is one.
    pub async fn next(&self) -> Key {
        loop {
            // There is one taker only: a notification too many costs one more pass of the loop.
            if let Some(key) = self.0.keys.lock().pop_first() {
                return key;
            }
            self.0.more.notified().await;
        }
    }

    /// Drops all keys, also later ones: a standby pushes everything when its term begins. Never
    /// ends.
    pub async fn ignore(&self) -> Infallible {
        loop {
            self.next().await;
        }
    }

    /// All keys, as they come. Never ends.
    pub fn stream(self) -> impl Stream<Item = Key> + Send + 'static {
        stream::unfold(self, |wakes| async move { Some((wakes.next().await, wakes)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_is_there_once_and_who_waits_is_told() {
        let wakes = Wakes::default();
        for name in ["b", "a", "b"] {
            wakes.push("n", name);
        }
        let key = |name: &str| ("n".to_owned(), name.to_owned());
        assert_eq!((wakes.next().await, wakes.next().await), (key("a"), key("b")));
        let waiting = tokio::spawn({
            let wakes = wakes.clone();
            async move { wakes.next().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished(), "nothing twice");
        wakes.push("n", "c");
        assert_eq!(waiting.await.unwrap(), key("c"));
    }
}
