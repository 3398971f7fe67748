//! What follows a failed pass: when the work is retried, and what is reported.

use kube::runtime::controller::Action;
use net::backoff::Backoff;

use super::failure::Failure;
use super::memory::Memory;
use super::target::Target;
use super::work::Work;
use super::{DEFINED, NAME, PATIENCE, Part, SLOT_AGAIN};
use crate::events::Reason;
use crate::metrics::WorkState;

// === impl Part ===

impl Part {
    /// Handles a pass that failed. Returns when the work is retried.
    pub(super) async fn failed(
        &self,
        work: &mut Work,
        target: &Target,
        memory: &mut Memory,
        failure: Failure,
    ) -> Action {
        if failure.is_over() {
            return Action::await_change();
        }
        if failure.is_for_slot() {
            return Action::requeue(SLOT_AGAIN);
        }
        let is_unreachable = failure.away().is_some() || failure.is_closed();
        // If the hub refuses that, it is retried with the rest.
        if is_unreachable && self.goes_without(work, memory).await.unwrap_or(false) {
            return Action::await_change();
        }
        let (cluster, name) = (work.cluster().to_owned(), work.name().to_owned());
        let failures = memory.failures;
        memory.failures = failures.saturating_add(1);
        let hop = failure.hop();
        if let Some(at_least) = failure.away() {
            let (after, is_news) = target.failed(at_least, &failure.to_string());
            if is_news {
                tracing::warn!(cluster, hop, ?after, "a cluster does not answer: {failure}");
            } else {
                tracing::debug!(cluster, work = name, hop, ?after, "{failure}");
            }
            if work.is_ending {
                let _ = self.tell_waiting(work, memory).await;
            }
            return Action::requeue(after);
        }
        if failure.is_conflict() {
            return Action::requeue(Backoff::CONFLICT.wait(failures));
        }
        if matches!(failure, Failure::Defined) && failures < PATIENCE {
            return Action::requeue(DEFINED.wait(failures));
        }
        let after = failure.after().unwrap_or_else(|| Backoff::OBJECT.wait(failures));
        self.metrics.failed(NAME);
        let text = failure.to_string();
        if memory.said == text {
            tracing::debug!(cluster, work = name, hop, ?after, "{text}");
        } else {
            tracing::warn!(cluster, work = name, hop, ?after, "{text}");
        }
        memory.said = text;
        self.tell_failed(work, memory, &failure, failures).await;
        Action::requeue(after)
    }

    /// Reports why the work cannot be processed.
    async fn tell_failed(&self, work: &mut Work, memory: &mut Memory, failure: &Failure, failures: u32) {
        if failure.is_kept_by_others() {
            self.tell(work, Reason::ForeignAgent, failure.to_string());
            self.metrics.delivery.settle(&work.key, WorkState::foreign());
        }
        // A single failure may be a coincidence.
        let why = failure.forbidden().or_else(|| failure.of_work().filter(|_| failures > 0));
        // A failed report is repeated the next time.
        let _ = match why {
            _ if work.is_ending => self.tell_deleting(work, memory, Some(&failure.to_string())).await,
            Some(why) => self.refuse(work, memory, &why).await.map(drop),
            None => Ok(()),
        };
    }
}
