//! All of a work, in its turn: what the watch told, or where that is not kept, what the hub says.

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

/// Held while a work takes memory.
type Taken = Vec<Permit<AtomicUsize>>;

// === impl Part ===

impl Part {
    /// Reads it, where there is room for that. Room for what the watch told comes first: a heavy
    /// one would be read in vain, again and again, for as long as others have that.
    ///
    /// # Errors
    ///
    /// When it is to be tried again: nothing is known of what it says, and nothing is done.
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
        if !is_kept && target.is_first_beyond() {
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
                // The watch is about to tell what became of it.
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

/// What is told of the first of a cluster's.
fn not_kept(cluster: &str) -> String {
    let shelf::Room { in_all, of_one } = shelf::ROOM;
    format!(
        "the controllers do not keep this work in memory: those of {cluster} take more than {} MiB, or those of all \
         clusters more than {} MiB. This work, and perhaps others, is read from the hub at each turn, which is slower; \
         nothing is lost. Create fewer or smaller works",
        of_one >> 20,
        in_all >> 20
    )
}
