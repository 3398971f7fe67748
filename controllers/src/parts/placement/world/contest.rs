//! Others who write the decisions of a Placement, or its status.
//!
//! A person's edit is put back: at once the first time, later the more often it happens. Another
//! controller's is not: two schedulers would go on for ever.

use std::time::Duration;

use net::backoff::Backoff;
use time::OffsetDateTime;

/// Between an edit and its end, from the second on.
const PUT_BACK: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_mins(5));
/// Whoever was silent so long does not write any more.
const SILENCE: Duration = Duration::from_mins(10);
/// What `kubectl` calls itself begins so: a person's hand.
const HAND: &str = "kubectl";

#[derive(Debug, Default)]
pub struct Contest {
    edits: u32,
    last: Option<OffsetDateTime>,
    not_before: Option<OffsetDateTime>,
    /// The other manager.
    other: Option<String>,
}

// === impl Contest ===

impl Contest {
    /// Somebody wrote a decision: `manager` its list, or anybody anything else of it. Or the
    /// status.
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

    /// Another manager that writes, and when it has been silent for long enough.
    pub fn other(&self, now: OffsetDateTime) -> Option<(&str, OffsetDateTime)> {
        let (other, end) = (self.other.as_deref()?, self.last? + SILENCE);
        (now < end).then_some((other, end))
    }

    /// When decisions may be written, if that is still to come.
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
        let mut contest = Contest::default();
        contest.seen(Some("kubectl-edit"), start);
        assert_eq!((contest.wait(start), contest.other(start)), (None, None), "at once");
        contest.seen(Some("kubectl-edit"), start);
        contest.seen(None, start);
        let wait = contest.wait(start).unwrap() - start;
        assert!(wait > Duration::from_millis(500), "{wait}");
        assert_eq!(contest.wait(start + wait), None);
        contest.seen(Some("placement"), start);
        assert_eq!(contest.other(start), Some(("placement", start + SILENCE)));
        let later = start + SILENCE + Duration::from_secs(1);
        assert_eq!(contest.other(later), None, "it is silent");
        contest.seen(Some("kubectl-edit"), later);
        assert_eq!((contest.wait(later), contest.other(later)), (None, None), "everything begins anew");
    }
}
