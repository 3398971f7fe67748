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
use time::OffsetDateTime;

use super::hub_calls::CallError;
use crate::queue::Queue;
use crate::wakes::{Key, Wakes};

const AT_ONCE: u16 = 16;
/// In a row, of which nothing is said.
const CONFLICTS: u32 = 3;

/// After a moment at which something ends: what counts until then counts until it is over.
const LATER: Duration = Duration::from_millis(5);

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
    Reported(String),
    /// A call failed, and something else is due within this.
    #[error("{error}")]
    Due { error: CallError, within: Duration },
}

/// Failures in a row, and those that were conflicts.
#[derive(Debug, Default)]
pub struct Tries(Mutex<HashMap<Key, Counts>>);

#[derive(Debug, Default)]
struct Counts {
    failures: u32,
    conflicts: u32,
}

/// The time now, for what has no clock of its own.
pub fn moment() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

/// Until a moment is over.
pub fn until(end: OffsetDateTime) -> Duration {
    Duration::try_from(end - moment()).unwrap_or_default().saturating_add(LATER)
}

/// Looks again then, if there is such a moment.
pub fn at(end: Option<OffsetDateTime>) -> Action {
    end.map_or_else(Action::await_change, |end| Action::requeue(until(end)))
}

// === impl Failure ===

impl Failure {
    /// Another writer came in between.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Call(error) | Self::Due { error, .. } if error.is_conflict())
    }

    /// The same, where something else is due within a time.
    pub fn by(self, within: Option<Duration>) -> Self {
        match (self, within) {
            (Self::Call(error), Some(within)) => Self::Due { error, within },
            (failure, _) => failure,
        }
    }

    /// When to try again, instead of after `backoff`.
    fn after(&self, backoff: Duration) -> Duration {
        if let Self::Due { within, .. } = self { backoff.min(*within) } else { backoff }
    }
}

// === impl Tries ===

impl Tries {
    fn succeeded(&self, key: &Key) {
        self.0.lock().remove(key);
    }

    fn failed(&self, key: Key) -> Duration {
        let mut tries = self.0.lock();
        let counts = tries.entry(key).or_default();
        let before = counts.failures;
        counts.failures = before.saturating_add(1);
        Backoff::OBJECT.wait(before)
    }

    fn conflicted(&self, key: Key) -> Duration {
        let mut tries = self.0.lock();
        let counts = tries.entry(key).or_default();
        let before = counts.conflicts;
        counts.conflicts = before.saturating_add(1);
        Backoff::CONFLICT.wait(before)
    }

    /// Whether one more conflict would be too many to say nothing.
    pub fn is_contested(&self, key: &Key) -> bool {
        self.0.lock().get(key).is_some_and(|counts| counts.conflicts >= CONFLICTS)
    }

    /// Of an object that is gone, nothing is kept.
    pub fn forget(&self, namespace: &str, name: &str) {
        self.succeeded(&(namespace.to_owned(), name.to_owned()));
    }
}

/// What work on an object came to. One that went meanwhile is not tried again; any other failure is
/// `counted`, a conflict only if there was one after another.
pub fn judged(
    done: Result<Action, Failure>,
    tries: &Tries,
    key: &Key,
    is_there: impl FnOnce() -> bool,
    counted: impl FnOnce(),
) -> Result<Action, Failure> {
    if done.is_err() && !is_there() {
        return Ok(Action::await_change());
    }
    if done.as_ref().is_err_and(|failure| !failure.is_conflict() || tries.is_contested(key)) {
        counted();
    }
    done
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
        let (own, tries) = (key(&object), worker.tries());
        let after = if failure.is_conflict() {
            let is_contested = tries.is_contested(&own);
            let after = tries.conflicted(own);
            if !is_contested {
                return Action::requeue(failure.after(after));
            }
            after
        } else {
            tries.failed(own)
        };
        let after = failure.after(after);
        tracing::warn!(kind = W::KIND, namespace = object.namespace(), name = object.name_any(), ?after, "{failure}");
        Action::requeue(after)
    };
    Queue { wakes, store, resource, at_once: AT_ONCE }.run(worker, work, retry).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_sooner_than_another_try_is_not_late() {
        let failure = || Failure::Call(CallError::Gone);
        let (soon, late) = (Duration::from_secs(2), Duration::from_mins(5));
        assert_eq!((failure().by(Some(soon)).after(late), failure().by(Some(late)).after(soon)), (soon, soon));
        assert_eq!(failure().by(None).after(late), late);
        assert!(failure().by(Some(soon)).is_conflict());
    }

    #[test]
    fn conflicts_without_end_are_told_and_come_ever_later() {
        let (tries, own) = (Tries::default(), ("n".to_owned(), "o".to_owned()));
        let first = tries.conflicted(own.clone());
        assert!(first <= Duration::from_millis(200) && !tries.is_contested(&own), "the watch tells");
        let waits: Vec<Duration> = (0..9).map(|_| tries.conflicted(own.clone())).collect();
        assert!(tries.is_contested(&own) && waits[8] >= Duration::from_secs(15), "{waits:?}");
        tries.succeeded(&own);
        assert!(!tries.is_contested(&own) && tries.conflicted(own) <= Duration::from_millis(200));
    }
}
