//! Decides which writes prove that we lead, and until when.

use std::time::Duration;

use tokio::time::Instant;

use super::lock::Setback;
use crate::failure::Cause;

/// The responses to the writes of one term. Pure: time is an argument.
#[derive(Debug)]
pub(super) struct Proof {
    term: Duration,
    confirmed: Option<Confirmed>,
}

#[derive(Debug, Clone, Copy)]
struct Confirmed {
    /// When the first acknowledgment arrived.
    since: Instant,
    until: Instant,
}

/// A write that has no response yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) at: Instant,
    /// Whether it is the claim, which starts the term.
    pub(super) claim: bool,
}

/// Why a term is over, or never began.
#[derive(Debug, thiserror::Error)]
pub(super) enum Loss {
    #[error("nothing was renewed within the renew deadline")]
    Lapsed,
    #[error("the Lease is not ours: {0}")]
    Taken(#[source] Cause),
    #[error("the Lease could not be claimed: {0}")]
    Unclaimed(#[source] Setback),
}

// === impl Proof ===

impl Proof {
    /// `term`: how long an acknowledged write counts, from when it was sent.
    pub(super) fn new(term: Duration) -> Self {
        Self { term, confirmed: None }
    }

    /// Until when we lead. `None` before the first acknowledgment.
    pub(super) fn until(&self) -> Option<Instant> {
        self.confirmed.map(|confirmed| confirmed.until)
    }

    /// Processes the response to a write, which arrived at `now`.
    ///
    /// An acknowledged write counts from when it was sent, no matter when the response arrived: the
    /// others read us as the holder from this write until the Lease's next change. A refusal only
    /// counts for a write that was sent after the first acknowledgment. An earlier write may have
    /// reached the hub before our claim did.
    ///
    /// # Errors
    /// Fails when the term is over. It is also over, permanently, if `now` is after
    /// [`Proof::until`]: callers of it in the meantime already saw that the term was over.
    pub(super) fn answered(&mut self, sent: Sent, answer: Result<(), Setback>, now: Instant) -> Result<(), Loss> {
        if self.until().is_some_and(|until| until <= now) {
            return Err(Loss::Lapsed);
        }
        match (answer, &mut self.confirmed) {
            (Ok(()), Some(confirmed)) => {
                confirmed.until = confirmed.until.max(sent.at + self.term);
                Ok(())
            }
            (Ok(()), first @ None) => {
                let until = sent.at + self.term;
                if until <= now {
                    return Err(Loss::Lapsed);
                }
                *first = Some(Confirmed { since: now, until });
                Ok(())
            }
            (Err(setback), None) if sent.claim => Err(Loss::Unclaimed(setback)),
            (Err(Setback::Refused(cause)), Some(confirmed)) if sent.at >= confirmed.since => Err(Loss::Taken(cause)),
            (Err(_), _) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
