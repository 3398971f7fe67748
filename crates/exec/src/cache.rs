//! Caches issued credentials for as long as a cluster uses them.
//!
//! Clusters with the same plugin and arguments share one entry. An entry runs its plugin only once
//! at a time, no matter how many requests wait. The run is a task of one runtime: it does not end
//! when a request goes away, but when the last cluster does.

mod entry;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::runtime::Handle;

use self::entry::Entry;
use crate::credential::Issued;
use crate::error::ExecError;
use crate::plugins::Runner;
use crate::request::{Fingerprint, Request};

/// Called for each run that a [`Source`] started.
pub type Observer = Arc<dyn Fn(&Result<Arc<Issued>, Arc<ExecError>>) + Send + Sync>;

/// The cache. One per process.
pub struct Credentials {
    /// At most one entry per cluster.
    entries: Mutex<HashMap<Fingerprint, Weak<Entry>>>,
    runtime: Handle,
    runner: Arc<dyn Runner>,
}

/// A cluster's share of an entry. The entry lives as long as any share.
pub struct Source {
    entry: Arc<Entry>,
    observer: Observer,
}

// === impl Credentials ===

impl Credentials {
    /// Runs plugins as tasks of `runtime`.
    pub fn new(runtime: Handle, runner: Arc<dyn Runner>) -> Arc<Self> {
        Arc::new(Self { entries: Mutex::default(), runtime, runner })
    }

    /// The source of the credential for `request`. Runs nothing yet.
    pub fn source(self: &Arc<Self>, request: Request, observer: Observer) -> Source {
        let fingerprint = request.fingerprint();
        let mut entries = self.entries.lock();
        let entry = entries.get(&fingerprint).and_then(Weak::upgrade).unwrap_or_else(|| {
            let entry = Arc::new(Entry::new(fingerprint, request, Arc::clone(self)));
            entries.insert(fingerprint, Arc::downgrade(&entry));
            entry
        });
        Source { entry, observer }
    }

    /// Number of entries in use.
    pub fn len(&self) -> usize {
        self.entries.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes a dropped entry, unless another has replaced it.
    fn forget(&self, fingerprint: &Fingerprint) {
        let mut entries = self.entries.lock();
        if entries.get(fingerprint).is_some_and(|entry| entry.strong_count() == 0) {
            entries.remove(fingerprint);
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("entries", &self.len()).finish_non_exhaustive()
    }
}

// === impl Source ===

impl Source {
    /// Whether `issued` is what [`Source::get`] would return. Lock-free, and changes no counter.
    pub fn is_current(&self, issued: &Arc<Issued>) -> bool {
        self.entry.is_current(issued)
    }

    /// Whether both sources yield the same credential.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.entry, &other.entry)
    }

    /// The current credential. Returns one that expires soon while the next is being issued, and
    /// waits only if there is none.
    pub async fn get(&self) -> Result<Arc<Issued>, Arc<ExecError>> {
        match self.entry.current() {
            Some(issued) => Ok(issued),
            None => self.entry.get(&self.observer).await,
        }
    }

    /// The replacement of `issued`, which a member rejected. `None` if there is no better one yet,
    /// because it is too fresh to run the plugin again.
    pub async fn renew(&self, issued: &Arc<Issued>) -> Result<Option<Arc<Issued>>, Arc<ExecError>> {
        self.entry.renew(issued, &self.observer).await
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
