//! What is remembered of an object between passes, and how long it rests.

use delivery::strategy::AnswerHashes;
use tokio::time::Instant;

use crate::parts::manifestworks::contest::Contest;

/// The state of an object between two passes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Remembered {
    pub seen: Option<AnswerHashes>,
    pub contest: Contest,
    /// Whether another work contests it.
    pub is_of_work: bool,
    /// Refusals of server-side apply because of others' fields, and the generation of the work that
    /// they belong to.
    pub conflicts: Contest,
    pub conflicts_at: Option<i64>,
    /// Failures in a row.
    pub failures: u32,
    /// The last logged failure, as a number.
    pub said: Option<u64>,
    /// When it is processed again, with or without a change.
    pub again: Option<Instant>,
}

// === impl Remembered ===

impl Remembered {
    /// Records that others' fields refused it just now, for that generation of the work.
    pub fn conflicted(&mut self, generation: i64, now: Instant) {
        if self.conflicts_at != Some(generation) {
            (self.conflicts, self.conflicts_at) = (Contest::default(), Some(generation));
        }
        self.conflicts.repaired(now);
    }

    /// The time before which no attempt is made, although the object may change: each would fail.
    pub fn rests(&self, generation: i64, now: Instant) -> Option<Instant> {
        let wait = self.conflicts.wait(now).filter(|_| self.conflicts_at == Some(generation))?;
        Some(now + wait)
    }
}
