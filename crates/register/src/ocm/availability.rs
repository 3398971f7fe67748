//! Whether a cluster without an agent is available. The member's answers through the gateway
//! replace an agent's renewals of its Lease.
//!
//! If an agent reports, its report counts, and no other judge runs in parallel. Times are of a
//! monotonic clock: a step of the system's time loses no cluster.

mod answering;
mod observed_lease;
mod ownership;

use std::time::{Duration, Instant};

use serde_json::Value;

use self::ownership::{ANSWERS, NOT_READY, UNREACHABLE, is_reported_lost, said};
use super::condition::{self, AVAILABLE, Condition};
use super::heartbeat::{DEFAULT_SECONDS, grace};
use crate::fields::field;
use crate::outcome::Outcome;

pub use self::answering::Answering;
pub use self::observed_lease::ObservedLease;
pub use self::ownership::{Owner, is_by_answers, owner};
/// Limits of the time between two probes of one member, for any lease duration.
const SHORTEST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_mins(5);
/// Minimum wait for the probe at the end of a grace.
const LEAST: Duration = Duration::from_secs(1);
/// Failures in a row that make a loss, once its grace is over.
const FAILURES: u32 = 2;
/// Answers in a row that end a loss: each change moves workloads.
const RETURNED: u32 = 3;
/// Periods for which an answer is evidence of health. Every grace is at least as long: evidence of
/// health at its end is then from after its beginning.
const FRESH: u32 = 2;
/// Among fewer clusters than this, all may be lost.
const FEW: usize = 3;
/// The longest grace: a cluster's own agent may write `leaseDurationSeconds`, and a cluster that is
/// never lost keeps its workloads forever. It is the grace of 3600 s.
const LONGEST_GRACE: Duration = Duration::from_hours(5);
/// While any cluster answers, a loss is held for this long, or for its grace, if that is longer. A
/// cluster that goes silent at the same time as another, and stays silent, holds the other's loss
/// no longer than that.
const HELD: Duration = Duration::from_mins(30);

/// What a member's answers say about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    /// Time between two probes.
    period: Duration,
    /// Its condition says that it is not available.
    is_lost: bool,
    /// It has answered, by our own probes or by its condition.
    has_answered: bool,
    /// The outcome of the last probe that counts; none before the first.
    outcome: Option<Outcome>,
    /// Probes in a row, up to the last, that did not reach the member.
    blind: u32,
    /// The same, while probes reached other members: only this cluster is not probed.
    unasked: u32,
    /// Time of its last answer.
    healthy: Option<Instant>,
    /// Answered probes in a row.
    well: u32,
    /// Failed probes in a row.
    failures: u32,
    /// Time of the first of these failed probes, not counting those while the path to members was
    /// in doubt.
    since: Option<Instant>,
    /// Time of the first of these failed probes, in doubt or not.
    silent: Option<Instant>,
    /// It was silent while the path was in doubt, and has not answered since.
    was_doubted: bool,
    /// Start of its silence in doubt while others answer.
    held: Option<Instant>,
    /// Its turn among many silent clusters, until it answers.
    turn: Turn,
}

/// Whether a loss may be reported, when losses are reported one after another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Turn {
    /// It needs no turn.
    #[default]
    None,
    /// Others come first.
    Waits,
    Has,
}

/// Time between two probes: the interval of an agent's renewals of its Lease, within limits.
fn period(cluster: &Value) -> Duration {
    let seconds = field(cluster, "spec.leaseDurationSeconds").and_then(Value::as_u64);
    let seconds = seconds.filter(|seconds| *seconds > 0).unwrap_or(DEFAULT_SECONDS.unsigned_abs());
    Duration::from_secs(seconds).clamp(SHORTEST, LONGEST)
}

/// How long probes must fail before it is lost: an agent's grace, at least two periods, and at most
/// five hours.
pub fn patience(cluster: &Value) -> Duration {
    asked(cluster).clamp(FRESH * period(cluster), LONGEST_GRACE)
}

/// An agent's grace, according to the cluster.
fn asked(cluster: &Value) -> Duration {
    Duration::from_millis(grace(cluster).unsigned_abs())
}

/// Added to a loss whose grace was shorter than the cluster asked for.
fn capped(cluster: &Value) -> &'static str {
    if asked(cluster) > LONGEST_GRACE {
        " Its leaseDurationSeconds counts as 3600: no cluster may be silent to probes for more than five hours."
    } else {
        ""
    }
}

// === impl Answers ===

impl Answers {
    /// For a member that was never probed.
    pub fn begun(cluster: &Value) -> Self {
        let mut begun = Self::default();
        begun.of(cluster);
        begun
    }

    /// Updates it from the present `cluster`.
    pub fn of(&mut self, cluster: &Value) {
        self.period = period(cluster);
        self.is_lost = condition::status(cluster, AVAILABLE).is_some_and(|status| status != "True");
        self.has_answered |= said(cluster) == (Some("True"), Some(ANSWERS));
    }

    /// Takes the outcome of a probe. `others_answer`: another member answered within the last
    /// period.
    ///
    /// A probe that did not reach the member restarts its grace, because what the member did
    /// meanwhile is unknown. But if others answer, the path as a whole works, and the probe counts
    /// for nothing.
    #[must_use]
    pub fn after(self, outcome: Outcome, now: Instant, others_answer: bool) -> Self {
        let is_blind = matches!(outcome, Outcome::NotProbed(_));
        let (blind, unasked) = (self.blind.saturating_add(1), self.unasked.saturating_add(1));
        let before = Self {
            blind: if is_blind { blind } else { 0 },
            unasked: if is_blind && others_answer { unasked } else { 0 },
            ..self
        };
        match &outcome {
            Outcome::NotProbed(_) if others_answer => before,
            Outcome::NotProbed(_) => {
                Self { outcome: Some(outcome), failures: 0, since: None, silent: None, held: None, ..before }
            }
            Outcome::Healthy => Self {
                has_answered: true,
                outcome: Some(outcome),
                healthy: Some(now),
                well: before.well.saturating_add(1),
                failures: 0,
                since: None,
                silent: None,
                was_doubted: false,
                held: None,
                turn: Turn::None,
                ..before
            },
            Outcome::NotReady | Outcome::Unreachable(_) => Self {
                outcome: Some(outcome),
                well: 0,
                failures: before.failures.saturating_add(1),
                since: before.since.or(Some(now)),
                silent: before.silent.or(Some(now)),
                ..before
            },
        }
    }

    /// Weighs its silence against `fleet`. While fewer than half of those that ever answered are
    /// healthy, its loss is reported only when it `is_next`, which is called once the grace is
    /// over. Other clusters that answered since show that there was a path; but a path that fails
    /// gradually would otherwise take nearly all clusters with it.
    #[must_use]
    pub fn weighed(self, fleet: Answering, cluster: &Value, now: Instant, is_next: impl FnOnce() -> bool) -> Self {
        // Its loss is already reported: the next one is another cluster.
        if is_reported_lost(cluster) {
            return self;
        }
        if fleet.is_doubtful() {
            return self.doubted(fleet, cluster, now, is_next);
        }
        let is_one_of_many = fleet.is_strained() && self.is_over(cluster, now);
        let turn = match self.turn {
            Turn::Has => Turn::Has,
            _ if !is_one_of_many => Turn::None,
            _ if is_next() => Turn::Has,
            _ => Turn::Waits,
        };
        Self { turn, ..self }
    }

    /// `fleet` puts the path to members in doubt: its grace begins with the first failed probe
    /// after the doubt. But if others answer meanwhile, the doubt ends after half an hour, or its
    /// grace, if that is longer: then all that time counts, if it `is_next`, which is called then.
    #[must_use]
    fn doubted(self, fleet: Answering, cluster: &Value, now: Instant, is_next: impl FnOnce() -> bool) -> Self {
        let is_held = self.is_away() && self.failures >= FAILURES;
        let held = self.held.or(Some(now)).filter(|_| is_held && !fleet.is_blind());
        let lasted = held.map(|held| now.saturating_duration_since(held));
        if lasted.is_some_and(|lasted| lasted >= HELD.max(patience(cluster))) && (self.turn == Turn::Has || is_next()) {
            return Self { since: held, held, was_doubted: false, turn: Turn::Has, ..self };
        }
        // A cluster in doubt has its own time: meanwhile it goes before no other.
        let turn = if self.turn == Turn::Waits { Turn::None } else { self.turn };
        Self { since: None, held, was_doubted: self.was_doubted || is_held, turn, ..self }
    }

    /// Whether the last probe failed at the member, or on the path to it.
    pub fn is_away(&self) -> bool {
        matches!(self.outcome, Some(Outcome::NotReady | Outcome::Unreachable(_)))
    }

    /// Whether it is away, or its condition says so.
    pub fn is_doubtful(&self) -> bool {
        self.is_away() || self.is_lost
    }

    /// Whether nothing may be reported about it, because it was silent while the path to members
    /// was in doubt, or waits for its turn: until it answers, or is lost on its own evidence.
    pub fn is_held(&self) -> bool {
        (self.was_doubted || self.turn == Turn::Waits) && !self.is_lost
    }

    /// Whether its loss waits to be reported, and it has been silent for longer than `other`. When
    /// losses are reported one after another, a cluster that repeatedly falls silent is then not
    /// first each time.
    pub fn waits_before(&self, other: &Self) -> bool {
        let is_before = self.silent.zip(other.silent).is_some_and(|(own, other)| own < other);
        self.turn == Turn::Waits && !self.is_lost && self.blind == 0 && is_before
    }

    /// Whether it answered within `time` before `now`, and has not failed since.
    fn has_answered_within(&self, time: Duration, now: Instant) -> bool {
        let within = |at: Instant| now.saturating_duration_since(at) <= time;
        !self.is_away() && self.healthy.is_some_and(within)
    }

    /// Whether probes repeatedly do not reach it, but reach others.
    fn is_unasked(&self) -> bool {
        self.unasked > FRESH
    }

    /// Whether it answered since `other` fell silent.
    fn has_answered_since(&self, other: &Self) -> bool {
        self.healthy.zip(other.silent).is_some_and(|(at, silent)| at >= silent)
    }

    /// Whether it was already silent, for more than `FRESH` periods of `other`, when `other` fell
    /// silent. A common cause would show in the other within one of its periods.
    fn was_silent_before(&self, other: &Self) -> bool {
        let before = self.silent.zip(other.silent).map(|(own, other)| other.saturating_duration_since(own));
        before.is_some_and(|before| before > FRESH * other.period)
    }

    /// Whether it answered within one period of `other`.
    pub fn answers_beside(&self, other: &Self, now: Instant) -> bool {
        self.has_answered_within(other.period, now)
    }

    /// The condition `Available` that `cluster` must have at `now`; none if it has it, or if
    /// nothing is known. `is_new`: a probe ended just now. Without a new probe, no loss is
    /// reported.
    pub fn condition(&self, cluster: &Value, now: Instant, is_new: bool) -> Option<Condition> {
        let condition = match self.outcome.as_ref()? {
            Outcome::NotProbed(_) => return None,
            Outcome::Healthy if is_reported_lost(cluster) && self.well < RETURNED => return None,
            Outcome::Healthy => Condition::available("True", ANSWERS, "The member's API server is ready.".to_owned()),
            // The reason for a member's absence may change with each probe. That is no news about
            // the cluster, and another taint would restart its time.
            _ if !is_new
                || self.turn == Turn::Waits
                || self.blind > 0
                || !self.is_over(cluster, now)
                || is_reported_lost(cluster) =>
            {
                return None;
            }
            Outcome::NotReady => {
                let message = format!("The member's API server says that it is not ready.{}", capped(cluster));
                Condition::available("False", NOT_READY, message)
            }
            Outcome::Unreachable(why) => {
                let message = format!("The member does not answer: {why}.{}", capped(cluster));
                Condition::available("Unknown", UNREACHABLE, message)
            }
        };
        (said(cluster) != (Some(condition.status), Some(condition.reason))).then_some(condition)
    }

    /// Whether it has been away for its whole grace.
    fn is_over(&self, cluster: &Value, now: Instant) -> bool {
        let lasted = self.since.map(|since| now.saturating_duration_since(since));
        self.failures >= FAILURES && lasted.is_some_and(|lasted| lasted >= patience(cluster))
    }

    /// Time until the next probe: the interval of an agent's renewals, or less, to probe a silent
    /// member at the end of its grace.
    pub fn wait(&self, cluster: &Value, now: Instant) -> Duration {
        let lasted = self.since.map(|since| now.saturating_duration_since(since));
        let left = lasted.map_or(Duration::ZERO, |lasted| patience(cluster).saturating_sub(lasted));
        if left.is_zero() { self.period } else { self.period.min(left).max(LEAST) }
    }
}

#[cfg(test)]
mod tests;
