//! What is worked on one by one, sixteen at a time, each with its own back-off.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::controller::Action;
use kube::runtime::reflector::Store;
use net::backoff::Backoff;
use parking_lot::Mutex;

use super::hub::CallError;
use crate::queue::Queue;
use crate::wakes::{Key, Wakes};

const AT_ONCE: u16 = 16;
const BACKOFF: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_mins(5));
/// Somebody else wrote: the watch is about to say what.
const AFTER_CONFLICT: Duration = Duration::from_millis(200);

/// What works on the objects of a queue.
pub trait Worker: Send + Sync + 'static {
    /// In logs.
    const KIND: &'static str;

    fn work(&self, object: &DynamicObject) -> impl Future<Output = Result<Action, Failure>> + Send;

    fn tries(&self) -> &Tries;
}

/// An object is tried again.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Call(#[from] CallError),
    /// It was said where people look; here only the time to try again matters.
    #[error("{0}")]
    Told(String),
}

/// Failures in a row.
#[derive(Debug, Default)]
pub struct Tries(Mutex<HashMap<Key, u32>>);

// === impl Tries ===

impl Tries {
    fn succeeded(&self, key: &Key) {
        self.0.lock().remove(key);
    }

    fn failed(&self, key: Key) -> Duration {
        let mut tries = self.0.lock();
        let failures = tries.entry(key).or_default();
        *failures = failures.saturating_add(1);
        BACKOFF.wait(*failures - 1)
    }

    /// Of an object that is gone, nothing is kept.
    pub fn forget(&self, namespace: &str, name: &str) {
        self.succeeded(&(namespace.to_owned(), name.to_owned()));
    }
}

/// Namespace and name, as [`Wakes`] have them.
pub fn key(object: &DynamicObject) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// Works on what is in `wakes`. Never ends.
pub async fn run<W: Worker>(worker: Arc<W>, wakes: Wakes, store: Store<DynamicObject>, resource: ApiResource) {
    let work = async |object: Arc<DynamicObject>, worker: Arc<W>| {
        let done = worker.work(&object).await;
        if done.is_ok() {
            worker.tries().succeeded(&key(&object));
        }
        done
    };
    let retry = |object: Arc<DynamicObject>, failure: &Failure, worker: Arc<W>| {
        if matches!(failure, Failure::Call(error) if error.is_conflict()) {
            return Action::requeue(AFTER_CONFLICT);
        }
        let after = worker.tries().failed(key(&object));
        tracing::warn!(kind = W::KIND, namespace = object.namespace(), name = object.name_any(), ?after, "{failure}");
        Action::requeue(after)
    };
    Queue { wakes, store, resource, at_once: AT_ONCE }.run(worker, work, retry).await;
}
