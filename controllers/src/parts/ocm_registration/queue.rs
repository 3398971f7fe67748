//! kube's queue, for what is not a source: objects by name, sixteen at a time, each with its own
//! back-off.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::applier;
use kube::runtime::controller::{Action, Config, Error};
use kube::runtime::reflector::{ObjectRef, Store};
use net::backoff::Backoff;
use parking_lot::Mutex;

use super::hub::CallError;
use crate::wakes::Wakes;

const AT_ONCE: u16 = 16;
const BACKOFF: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_mins(5));
/// Somebody else wrote: the watch is about to say what.
const AFTER_CONFLICT: Duration = Duration::from_millis(200);

/// What works on the objects of a queue.
pub trait Worker: Send + Sync + 'static {
    /// In logs.
    const KIND: &'static str;

    fn work(self: Arc<Self>, object: Arc<DynamicObject>) -> BoxFuture<'static, Result<Action, Failure>>;

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
pub struct Tries(Mutex<HashMap<String, u32>>);

// === impl Tries ===

impl Tries {
    fn succeeded(&self, name: &str) {
        self.0.lock().remove(name);
    }

    fn failed(&self, name: &str) -> Duration {
        let mut tries = self.0.lock();
        let failures = tries.entry(name.to_owned()).or_default();
        *failures = failures.saturating_add(1);
        BACKOFF.wait(*failures - 1)
    }

    /// Of an object that is gone, nothing is kept.
    pub fn forget(&self, name: &str) {
        self.succeeded(name);
    }
}

/// Works on what is in `wakes`. Never ends.
pub async fn run<W: Worker>(worker: Arc<W>, wakes: Wakes, store: Store<DynamicObject>, resource: ApiResource) {
    let keys = wakes.stream().map(move |(_, name)| Ok::<_, Infallible>(ObjectRef::new_with(&name, resource.clone())));
    let work = |object: Arc<DynamicObject>, worker: Arc<W>| {
        Box::pin(async move {
            let name = object.name_any();
            let done = Arc::clone(&worker).work(object).await;
            if done.is_ok() {
                worker.tries().succeeded(&name);
            }
            done
        })
    };
    let retry = |object: Arc<DynamicObject>, failure: &Failure, worker: Arc<W>| {
        if matches!(failure, Failure::Call(error) if error.is_conflict()) {
            return Action::requeue(AFTER_CONFLICT);
        }
        let after = worker.tries().failed(&object.name_any());
        tracing::warn!(kind = W::KIND, name = object.name_any(), ?after, "{failure}");
        Action::requeue(after)
    };
    let config = Config::default().concurrency(AT_ONCE);
    applier(work, retry, worker, store, keys, config)
        .for_each(|done| async move {
            if let Err(error @ Error::RunnerError(_)) = done {
                tracing::error!(%error, "the queue does not run");
            }
        })
        .await;
}
