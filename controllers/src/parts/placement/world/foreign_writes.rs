//! Writes by others to a Placement's decisions or its status.
//!
//! The scheduler reverts a person's edit: at once the first time, and later each time it happens
//! again. It does not revert another controller's writes, because two schedulers would never stop.

use std::time::Duration;

use net::backoff::Backoff;
use time::OffsetDateTime;

/// Wait before an edit is reverted, from the second edit on.
const PUT_BACK: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_mins(5));
/// After this long without a write, a former writer no longer counts.
const SILENCE: Duration = Duration::from_mins(10);
/// Prefix of the field managers of `kubectl`, which mark a person's edit.
const HAND: &str = "kubectl";

#[derive(Debug, Default)]
pub struct ForeignWrites {
    edits: u32,
    last: Option<OffsetDateTime>,
    not_before: Option<OffsetDateTime>,
    /// The field manager of another controller.
    other: Option<String>,
}

// === impl ForeignWrites ===

impl ForeignWrites {
    /// Counts a write by another client. `manager` wrote a decision's list or the status; it is
    /// None if the writer is unknown, or if the write changed another part of a decision.
    pub fn seen(&mut self, manager: Option<&str>, now: OffsetDateTime) {
        if self.last.is_none_or(|last| now - last > SILENCE) {
            *self = Self::default();
        }
        self.last = Some(now);
        if let Some(manager) = manager.filter(|manager| !manager.starts_with(HAND)) {
            self.other = Some(manager.to_owned());
            return;
        }
        let wait = self.edits.checked_sub(1).map_or(Duration::ZERO, |before| PUT_BACK.wait(before));
        self.edits = self.edits.saturating_add(1);
        self.not_before = Some(now + wait);
    }

    /// Another controller that writes, and the end of the wait for its silence.
    pub fn other(&self, now: OffsetDateTime) -> Option<(&str, OffsetDateTime)> {
        let (other, end) = (self.other.as_deref()?, self.last? + SILENCE);
        (now < end).then_some((other, end))
    }

    /// The time before which decisions must not be written, if it is still to come.
    pub fn wait(&self, now: OffsetDateTime) -> Option<OffsetDateTime> {
        self.not_before.filter(|moment| now < *moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hand_is_corrected_ever_later_and_another_scheduler_left_alone() {
        let start = OffsetDateTime::UNIX_EPOCH;
        let mut foreign_writes = ForeignWrites::default();
        foreign_writes.seen(Some("kubectl-edit"), start);
        assert_eq!((foreign_writes.wait(start), foreign_writes.other(start)), (None, None), "at once");
        foreign_writes.seen(Some("kubectl-edit"), start);
        foreign_writes.seen(None, start);
        let wait = foreign_writes.wait(start).unwrap() - start;
        assert!(wait > Duration::from_millis(500), "{wait}");
        assert_eq!(foreign_writes.wait(start + wait), None);
        foreign_writes.seen(Some("placement"), start);
        assert_eq!(foreign_writes.other(start), Some(("placement", start + SILENCE)));
        let later = start + SILENCE + Duration::from_secs(1);
        assert_eq!(foreign_writes.other(later), None, "it is silent");
        foreign_writes.seen(Some("kubectl-edit"), later);
        assert_eq!((foreign_writes.wait(later), foreign_writes.other(later)), (None, None), "everything begins anew");
    }
}
