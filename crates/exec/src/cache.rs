//! Issued credentials, kept for as long as a cluster uses them.
//!
//! Clusters whose plugin and arguments are the same share one entry. An entry runs its plugin once
//! at a time, however many requests wait for it, as a task of one runtime: a request that goes away
//! does not end it, the last cluster does.

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

/// Called for every run that a [`Source`] started.
pub type Observer = Arc<dyn Fn(&Result<Arc<Issued>, Arc<ExecError>>) + Send + Sync>;

/// All that is kept. One per process.
pub struct Credentials {
    /// As many as there are clusters, at most.
    entries: Mutex<HashMap<Fingerprint, Weak<Entry>>>,
    runtime: Handle,
    runner: Arc<dyn Runner>,
}

/// A cluster's share in an entry, which lives as long as any share of it.
pub struct Source {
    entry: Arc<Entry>,
    observer: Observer,
}

// === impl Credentials ===

impl Credentials {
    /// Plugins run as tasks of `runtime`.
    pub fn new(runtime: Handle, runner: Arc<dyn Runner>) -> Arc<Self> {
        Arc::new(Self { entries: Mutex::default(), runtime, runner })
    }

    /// Where to get the credential for `request`. Runs nothing yet.
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

    /// Entries in use.
    pub fn len(&self) -> usize {
        self.entries.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An entry has gone; another may have come in its place meanwhile.
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
    /// Whether `issued` is what [`Source::get`] would give. Takes no lock and touches no counter.
    pub fn is_current(&self, issued: &Arc<Issued>) -> bool {
        self.entry.is_current(issued)
    }

    /// Whether both get the same credential.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.entry, &other.entry)
    }

    /// The credential to use now. One that is about to expire is served while the next is being
    /// issued; waits only if there is none.
    pub async fn get(&self) -> Result<Arc<Issued>, Arc<ExecError>> {
        match self.entry.current() {
            Some(issued) => Ok(issued),
            None => self.entry.get(&self.observer).await,
        }
    }

    /// A member rejected `issued`: what to use in its place. `None` if there is nothing better to
    /// be had yet: it is too fresh for its plugin to be asked again.
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
