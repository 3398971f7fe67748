//! Whether an agent still renews its Lease, if Leases are not followed: the Lease is read again at
//! the end of each grace. Otherwise the last report of an agent that is gone would stand forever.

use std::time::{Duration, Instant};

/// A Lease, and when it was last seen to change. The time that the agent writes does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservedLease {
    /// Time of renewal as the agent wrote it, in milliseconds since 1970. None: there is no Lease.
    renewed: Option<i64>,
    since: Instant,
}

// === impl ObservedLease ===

impl ObservedLease {
    /// The Lease at first sight: the agent has its whole grace.
    pub fn found(renewed: Option<i64>, now: Instant) -> Self {
        Self { renewed, since: now }
    }

    /// The Lease as it is now.
    #[must_use]
    pub fn seen(self, renewed: Option<i64>, now: Instant) -> Self {
        if renewed == self.renewed { self } else { Self { renewed, since: now } }
    }

    /// Time until the agent counts as silent: a grace after its last renewal was seen.
    pub fn left(&self, grace: Duration, now: Instant) -> Duration {
        grace.saturating_sub(now.saturating_duration_since(self.since))
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a moment to count from: no clock is read after it")]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_mins(5);

    #[test]
    fn an_agent_is_silent_a_grace_after_its_last_renewal_was_seen_whatever_time_it_writes() {
        let begin = Instant::now();
        let lease = ObservedLease::found(Some(1), begin);
        assert_eq!([begin, begin + GRACE].map(|at| lease.left(GRACE, at)), [GRACE, Duration::ZERO]);
        let later = begin + 2 * GRACE;
        assert_eq!(lease.seen(Some(1), later).left(GRACE, later), Duration::ZERO, "the same is no renewal");
        for other in [Some(2), Some(0), None] {
            assert_eq!(lease.seen(other, later).left(GRACE, later), GRACE, "{other:?}");
        }
    }

    #[test]
    fn without_a_lease_it_is_silent_too() {
        let begin = Instant::now();
        assert!(ObservedLease::found(None, begin).seen(None, begin + GRACE).left(GRACE, begin + GRACE).is_zero());
    }
}
