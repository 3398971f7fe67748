//! When an agent counts as silent.
//!
//! The agent writes its own clock's time into the Lease. Upstream compares this with the hub's
//! clock, so that an agent whose clock is ten minutes behind is never available. Here the time at
//! which a renewal was *seen* counts, unless both clocks agree. A time from before we watched is
//! believed. Times are milliseconds since 1970.

use serde_json::Value;

use crate::fields::field;

/// Name of the Lease in a cluster's namespace, and of its holder.
pub const LEASE: &str = "managed-cluster-lease";
/// Renewals that an agent may miss.
const TIMES: i64 = 5;
/// Default of `spec.leaseDurationSeconds`.
pub(super) const DEFAULT_SECONDS: i64 = 60;
const MILLISECONDS: i64 = 1000;

/// The last sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat {
    /// Time of renewal as the agent wrote it.
    renewed: i64,
    /// Time of renewal by our clock.
    last: i64,
    /// Whether observed renewals show that the agent's clock agrees with ours; none before the
    /// first, because the hub writes a new Lease's time.
    pub is_synced: Option<bool>,
}

/// How long the agent of `cluster` may be silent.
pub fn grace(cluster: &Value) -> i64 {
    let seconds = field(cluster, "spec.leaseDurationSeconds").and_then(Value::as_i64);
    let seconds = seconds.filter(|seconds| (1..=i64::from(i32::MAX)).contains(seconds)).unwrap_or(DEFAULT_SECONDS);
    TIMES * seconds * MILLISECONDS
}

// === impl Beat ===

impl Beat {
    /// The Lease at first sight. A time far from ours is either old or from a wrong clock; it
    /// counts as a wrong clock's if the clock was known to be wrong.
    pub fn found(renewed: i64, now_millis: i64, grace: i64, was_out_of_sync: bool) -> Self {
        let is_far = (now_millis - renewed).abs() >= grace;
        Self {
            renewed,
            last: if is_far && was_out_of_sync { now_millis } else { renewed.min(now_millis) },
            is_synced: None,
        }
    }

    /// The Lease as it is now.
    #[must_use]
    pub fn seen(self, renewed: i64, now_millis: i64, grace: i64) -> Self {
        if renewed == self.renewed {
            return self;
        }
        let is_synced = (now_millis - renewed).abs() < grace;
        Self { renewed, last: if is_synced { renewed.min(now_millis) } else { now_millis }, is_synced: Some(is_synced) }
    }

    /// The same once our clock was set by so many milliseconds, forward or back: the time since
    /// then is the same, or none.
    #[must_use]
    pub fn set_by(self, millis: i64, now_millis: i64) -> Self {
        Self { last: self.last.saturating_add(millis.max(0)).min(now_millis), ..self }
    }

    /// Time from which the agent counts as silent.
    pub fn silent_from(&self, grace: i64) -> i64 {
        self.last.saturating_add(grace)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const GRACE: i64 = 300_000;
    const NOW: i64 = 1_900_000_000_000;

    #[test]
    fn five_times_the_duration() {
        let of = |value: Value| grace(&json!({"spec": {"leaseDurationSeconds": value}}));
        assert_eq!((of(json!(60)), of(json!(1)), of(json!(0))), (GRACE, 5000, GRACE));
        assert_eq!((of(json!(-1)), of(json!("x")), grace(&json!({}))), (GRACE, GRACE, GRACE));
        assert!(of(json!(i32::MAX)) > 0);
    }

    #[test]
    fn with_clocks_that_agree_the_agents_time_counts() {
        let beat = Beat::found(NOW - 10_000, NOW, GRACE, false);
        assert_eq!((beat.silent_from(GRACE), beat.is_synced), (NOW + 290_000, None));
        let later = beat.seen(NOW + 50_000, NOW + 50_020, GRACE);
        assert_eq!((later.silent_from(GRACE), later.is_synced), (NOW + 350_000, Some(true)));
        assert_eq!(later.seen(NOW + 50_000, NOW + 200_000, GRACE), later, "nothing new");
    }

    #[test]
    fn a_clock_that_is_set_is_no_silence_and_no_life() {
        let (beat, hour) = (Beat::found(NOW - 10_000, NOW, GRACE, false), 3_600_000);
        let ahead = beat.set_by(hour, NOW + hour);
        assert_eq!(ahead.silent_from(GRACE), NOW + hour - 10_000 + GRACE);
        assert_eq!(ahead.set_by(-hour, NOW).silent_from(GRACE), NOW + GRACE, "no later than seen just now");
        assert_eq!(ahead.seen(NOW - 10_000, NOW + hour, GRACE), ahead, "nothing new");
    }

    #[test]
    fn an_old_lease_is_silent_at_once() {
        let beat = Beat::found(NOW - GRACE, NOW, GRACE, false);
        assert_eq!((beat.silent_from(GRACE), beat.is_synced), (NOW, None));
    }

    #[test]
    fn an_agent_with_a_wrong_clock_is_available_while_it_renews() {
        for skew in [-600_000, 600_000] {
            let beat = Beat::found(NOW + skew - 60_000, NOW - 60_000, GRACE, true).seen(NOW + skew, NOW, GRACE);
            assert_eq!((beat.silent_from(GRACE), beat.is_synced), (NOW + GRACE, Some(false)), "{skew}");
        }
        // A time in the future does not extend the grace.
        assert_eq!(Beat::found(NOW + 600_000, NOW, GRACE, false).silent_from(GRACE), NOW + GRACE);
    }
}
