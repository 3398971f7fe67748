//! The full contents of a work, in its turn: as the watch brought them, or read from the hub if
//! they are not kept.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use kube::Api;
use kube::api::DynamicObject;
use kube::runtime::controller::Action;
use net::backoff::Backoff;
use net::permit::Permit;

use super::memory::Memory;
use super::target::Target;
use super::work::{self, Work, works};
use super::{NAME, Part, SLOT_AGAIN, shelf};
use crate::events::Reason;
use crate::raw::RawObject;

/// Permits held while a work takes memory.
type Taken = Vec<Permit<AtomicUsize>>;

// === impl Part ===

impl Part {
    /// Reads the work, if there is room for it. Room for the known weight is reserved first:
    /// otherwise a heavy work would be read in vain, again and again, while others have the room.
    ///
    /// # Errors
    ///
    /// Fails with the time of the next attempt: the contents are unknown, and nothing is done.
    pub(super) async fn whole(
        &self,
        known: Arc<DynamicObject>,
        target: &Target,
        memory: &mut Memory,
    ) -> Result<(Work, Taken), Action> {
        let again = || Action::requeue(SLOT_AGAIN);
        let is_kept = shelf::is_whole(&known);
        let mut taken = target.room(shelf::weighs(&known)).ok_or_else(again)?;
        let object = if is_kept {
            known
        } else {
            let reading = target.reading().ok_or_else(again)?;
            let object = Arc::new(self.read_anew(&known, memory).await?);
            if taken.is_empty() {
                // It may have grown meanwhile.
                taken = target.room(shelf::weighs(&object)).ok_or_else(again)?;
            }
            taken.push(reading);
            object
        };
        let work = Work::read(&object);
        if !is_kept && target.mark_beyond() {
            self.tell(&work, Reason::WorkNotKept, not_kept(work.cluster()));
        }
        Ok((work, taken))
    }

    async fn read_anew(&self, known: &DynamicObject, memory: &mut Memory) -> Result<DynamicObject, Action> {
        let (cluster, name) = work::key(known);
        let api: Api<RawObject> = Api::namespaced_with(self.hub.client.clone(), &cluster, &works());
        match self.hub.read(api.get_opt(&name)).await {
            Ok(Some(found)) => {
                let found = found.pack();
                // The watch is about to bring the change.
                let is_same = found.metadata.uid == known.metadata.uid;
                if is_same { Ok(found) } else { Err(Action::requeue(SLOT_AGAIN)) }
            }
            Ok(None) => Err(Action::requeue(SLOT_AGAIN)),
            Err(error) => {
                let after = Backoff::OBJECT.wait(memory.failures);
                memory.failures = memory.failures.saturating_add(1);
                self.metrics.failed(NAME);
                tracing::warn!(
                    cluster, work = name, ?after, %error,
                    "a work that is not kept in memory cannot be read from the hub: nothing is done with it until it \
                     can (403: grant the controllers get on manifestworks)"
                );
                Err(Action::requeue(after))
            }
        }
    }
}

/// The text of the Event for a cluster's first such work.
fn not_kept(cluster: &str) -> String {
    let shelf::MemoryLimits { in_all, of_one } = shelf::LIMITS;
    format!(
        "the controllers do not keep this work in memory: those of {cluster} take more than {} MiB, or those of all \
         clusters more than {} MiB. This work, and perhaps others, is read from the hub at each turn, which is slower; \
         nothing is lost. Create fewer or smaller works",
        of_one >> 20,
        in_all >> 20
    )
}
