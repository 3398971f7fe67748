//! The watch hub: one writer, any number of watches, a short history to resume from.
//!
//! A watch subscribes and takes its backlog under the same lock the writer holds, so that no change falls
//! between the two. A watch that falls behind the live queue is ended with 410 and starts over: memory stays
//! bounded whatever a client does.

mod stream;

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::broadcast;

pub(crate) use self::stream::{Options, Stream};
use super::{
    model::{Change, Model},
    object::{Key, Object},
    selector::Selection,
    status::Refusal,
};

/// Changes that a watch may resume behind.
const HISTORY: usize = 1024;
/// Changes that a slow watch may fall behind the live ones.
const LIVE_QUEUE: usize = 256;

/// The member's objects together with everybody who watches them.
#[derive(Debug)]
pub(crate) struct Hub {
    inner: Mutex<Inner>,
    live: broadcast::Sender<Arc<Change>>,
}

#[derive(Debug)]
struct Inner {
    model: Model,
    history: VecDeque<Arc<Change>>,
    /// Watches cannot resume at or before this version's predecessor.
    oldest: u64,
}

/// Where a watch starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// With the present state, as ADDED events (`resourceVersion` unset or `0`).
    Now,
    /// After a version that a list or an event carried.
    Version(u64),
}

/// A started watch: what is known already, then what comes.
#[derive(Debug)]
pub(crate) struct Subscription {
    /// Changes to deliver first.
    pub(crate) backlog: VecDeque<Arc<Change>>,
    /// Changes from then on, without gap or overlap.
    pub(crate) live: broadcast::Receiver<Arc<Change>>,
    /// The version of the model when the watch started.
    pub(crate) version: u64,
}

// === impl Hub ===

impl Hub {
    /// A hub over a model that nobody has watched yet.
    pub(crate) fn new(model: Model) -> Self {
        let oldest = model.version();
        let inner = Inner { model, history: VecDeque::with_capacity(HISTORY), oldest };
        Self { inner: Mutex::new(inner), live: broadcast::Sender::new(LIVE_QUEUE) }
    }

    /// Mutates the model and tells every watch about what changed.
    pub(crate) fn update(&self, mutate: impl FnOnce(&mut Model) -> Option<Change>) {
        let mut inner = self.inner.lock();
        let Some(change) = mutate(&mut inner.model).map(Arc::new) else { return };
        if inner.history.len() == HISTORY
            && let Some(forgotten) = inner.history.pop_front()
        {
            inner.oldest = forgotten.version;
        }
        inner.history.push_back(Arc::clone(&change));
        // Sent under the lock, so that the live queue has the order of the versions. No receiver is no error.
        let _ = self.live.send(change);
    }

    /// One object.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Object>> {
        self.inner.lock().model.get(key)
    }

    /// The selected objects and the version they were read at.
    pub(crate) fn list(&self, selection: &Selection) -> (Vec<Arc<Object>>, u64) {
        let inner = self.inner.lock();
        (inner.model.list(selection), inner.model.version())
    }

    /// Starts a watch. A version from the future is refused like one from too far back: it can only come from
    /// another member or an earlier run, and the client's answer to 410 is to list again.
    pub(crate) fn subscribe(&self, selection: &Selection, since: Since) -> Result<Subscription, Refusal> {
        let inner = self.inner.lock();
        let version = inner.model.version();
        let backlog = match since {
            Since::Now => inner.model.list(selection).into_iter().map(|object| Arc::new(created(object))).collect(),
            Since::Version(known) if known < inner.oldest || known > version => return Err(Refusal::Expired(known)),
            Since::Version(known) => inner.history.iter().filter(|change| change.version > known).cloned().collect(),
        };
        Ok(Subscription { backlog, live: self.live.subscribe(), version })
    }
}

/// The synthetic change by which a watch learns of an object that was there before it.
fn created(object: Arc<Object>) -> Change {
    let version = object.field("metadata.resourceVersion").parse().unwrap_or_default();
    Change { version, before: None, after: Some(object) }
}

#[cfg(test)]
mod tests;
