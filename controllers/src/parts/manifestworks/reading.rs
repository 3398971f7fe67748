//! A pass over a complete work: it reads the objects, and writes nothing to the member.

use std::collections::HashSet;

use delivery::condition;
use delivery::identity::Identity;
use delivery::manifests::Manifest;
use delivery::ownership::Owner;
use delivery::work::{is_complete, kind};

use super::begun::Begun;
use super::complete::listed;
use super::done::Done;
use super::failure::Failure;
use super::memory::Memory;
use super::pass::Pass;
use super::statuses::has_outcome;
use crate::parts::watched::number;

// === impl Pass ===

impl Pass<'_> {
    /// Reads the objects that the work's status lists: what its spec wants by now is not applied.
    pub(super) async fn read_over(&self, memory: &mut Memory, begun: &mut Begun) -> Result<(), Failure> {
        let before = &self.work.status;
        // As upstream: before it was applied, there is nothing to report. Nor where the status of
        // its manifests is missing, because the hub takes no status as large.
        let is_missing = !before.resource_status.manifests.iter().any(has_outcome);
        if condition::find(&before.conditions, kind::APPLIED).is_none() || is_missing {
            self.make_room(memory, &[]);
            self.see(&Done { manifests: &[], outcomes: Vec::new() }, memory, None, &[]);
            (memory.settled, memory.owed, memory.removal) = (Some(self.work.generation), HashSet::new(), None);
            return Ok(());
        }
        let manifests = listed(before);
        let identities: Vec<Identity> = manifests.iter().map(Manifest::identity).collect();
        if begun.reads(number(&identities)) {
            // The dropped outcomes belonged to processed objects, which would not be processed
            // again.
            memory.owed.extend(identities);
        }
        self.make_room(memory, &manifests);
        let (done, failure) = self.settle_all(&manifests, memory, (&nobody(), &[]), begun).await;
        if let Some(failure) = failure {
            if failure.is_for_slot() {
                self.remember(done, memory, begun);
            }
            return Err(failure);
        }
        self.see(&done, memory, None, &[]);
        memory.removal = None;
        let status = self.status(done, None);
        memory.settled = Some(self.work.generation);
        memory.becomes(is_complete(&status.conditions));
        memory.status = Some(status);
        memory.owed = HashSet::new();
        Ok(())
    }
}

/// The owner of no object.
fn nobody() -> Owner {
    Owner { api_version: String::new(), kind: String::new(), name: String::new(), uid: "none".to_owned() }
}
