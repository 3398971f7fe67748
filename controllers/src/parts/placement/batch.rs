//! Writes the changed decisions of a Placement, several at a time, in an order in which readers
//! never miss a cluster.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::stream::{self, StreamExt as _};
use kube::api::DynamicObject;

use super::order::{Write, waves};
use super::plan::{Change, Surplus};
use super::scheduler::Scheduler;
use crate::parts::hub_calls::CallError;

/// Concurrent writes for one Placement. With fewer, more rounds would wait for the hub one after
/// another.
const AT_ONCE: usize = 16;

/// Progress of a batch.
#[derive(Default)]
struct Progress {
    /// Versions of the decisions written so far, by the index of the change.
    written: HashMap<usize, String>,
    first: Option<CallError>,
    /// The hub accepts no writes, so the rest of the batch would only wait in vain.
    is_over: AtomicBool,
}

// === impl Scheduler ===

impl Scheduler {
    /// Writes all changed decisions. After a failed write it skips the writes that would lose a
    /// cluster without it, or all further writes if the hub accepts none.
    pub(super) async fn write_decisions(
        &self,
        placement: &DynamicObject,
        changes: &[Change],
        surplus: &[Surplus],
        warning: &str,
    ) -> Result<(), CallError> {
        let mut progress = Progress::default();
        for wave in waves(changes) {
            let allowed = wave.iter().filter(|write| progress.allows(write));
            let due: Vec<(usize, Change)> = allowed
                .map(|write| (write.index, changes[write.index].due(write, progress.written.get(&write.index))))
                .collect();
            let (progress_of, warning) = (&progress, warning);
            let writes = due.iter().map(|(index, change)| async move {
                (*index, progress_of.attempt(self.in_turn(Box::pin(self.write(placement, change, warning)))).await)
            });
            let done: Vec<_> = stream::iter(writes.collect::<Vec<_>>()).buffer_unordered(AT_ONCE).collect().await;
            progress.take(done);
        }
        progress.first.map_or(Ok(()), Err)?;
        // Last, so that readers find a cluster twice rather than not at all.
        let progress = Progress::default();
        let removals = surplus.iter().map(|one| progress.attempt(self.in_turn(Box::pin(self.remove(placement, one)))));
        let removals: Vec<_> = removals.collect();
        let removed: Vec<_> = stream::iter(removals).buffer_unordered(AT_ONCE).collect().await;
        removed.into_iter().flatten().collect()
    }

    /// Makes a write with one of the [`WRITES`](super::scheduler::WRITES) permits of all
    /// Placements.
    async fn in_turn<T>(&self, write: impl Future<Output = T>) -> T {
        // The semaphore is never closed.
        let _permit = self.writes.acquire().await;
        write.await
    }
}

// === impl Progress ===

impl Progress {
    /// Whether other decisions already have the clusters that this write drops.
    fn allows(&self, write: &Write) -> bool {
        write.after.iter().all(|needed| self.written.contains_key(needed))
    }

    /// None if no call was made, because the hub accepts no writes.
    async fn attempt<T>(&self, call: impl Future<Output = Result<T, CallError>>) -> Option<Result<T, CallError>> {
        if self.is_over.load(Ordering::Relaxed) {
            return None;
        }
        let done = call.await;
        if done.as_ref().is_err_and(CallError::concerns_all) {
            self.is_over.store(true, Ordering::Relaxed);
        }
        Some(done)
    }

    fn take(&mut self, done: Vec<(usize, Option<Result<String, CallError>>)>) {
        for (index, written) in done {
            match written {
                Some(Ok(version)) => drop(self.written.insert(index, version)),
                Some(Err(error)) => {
                    // Writes that depend on this one must not follow, nor its own second write.
                    self.written.remove(&index);
                    self.first.get_or_insert(error);
                }
                None => drop(self.written.remove(&index)),
            }
        }
    }
}

// === impl Change ===

impl Change {
    /// The change that `write` sends. `before` is the version after an earlier write of this
    /// change.
    fn due(&self, write: &Write, before: Option<&String>) -> Self {
        Self {
            name: self.name.clone(),
            version: before.or(self.version.as_ref()).cloned(),
            before: Vec::new(),
            metadata: self.metadata.clone().filter(|_| before.is_none()),
            list: if write.is_widening { self.widened() } else { self.list.clone() },
        }
    }
}
