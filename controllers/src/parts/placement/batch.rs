//! Writes of all decisions of a Placement that differ: several at a time, in an order in which
//! nothing is lost.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::stream::{self, StreamExt as _};
use kube::api::DynamicObject;

use super::order::{Write, waves};
use super::plan::{Change, Surplus};
use super::scheduler::Scheduler;
use crate::parts::hub::CallError;

/// Decisions of one Placement that are written at a time: each further round waits for the hub once
/// more.
const AT_ONCE: usize = 16;

/// How far a batch got.
#[derive(Default)]
struct Progress {
    /// Versions of what was written, by the index of its change.
    written: HashMap<usize, String>,
    first: Option<CallError>,
    /// The hub does not take writes: each of the rest would wait in vain.
    is_over: AtomicBool,
}

// === impl Scheduler ===

impl Scheduler {
    /// Writes all decisions that differ. One that fails lets those be written that lose nothing by
    /// that, unless the hub takes none.
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
        // Only then: who reads meanwhile finds a cluster twice rather than not at all.
        let progress = Progress::default();
        let removals = surplus.iter().map(|one| progress.attempt(self.in_turn(Box::pin(self.remove(placement, one)))));
        let removals: Vec<_> = removals.collect();
        let removed: Vec<_> = stream::iter(removals).buffer_unordered(AT_ONCE).collect().await;
        removed.into_iter().flatten().collect()
    }

    /// A write, as one of so many of all Placements.
    async fn in_turn<T>(&self, write: impl Future<Output = T>) -> T {
        // It is never closed.
        let _permit = self.writes.acquire().await;
        write.await
    }
}

// === impl Progress ===

impl Progress {
    /// What it loses was taken by others.
    fn allows(&self, write: &Write) -> bool {
        write.after.iter().all(|needed| self.written.contains_key(needed))
    }

    /// None if it was not tried.
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
                    // A second write of it is not to be, nor is it what others wait for.
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
    /// What is to be sent for `write`, after one before it that led to a version.
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
