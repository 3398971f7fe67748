//! Whether a cluster without an agent is available: its member's answers, through the gateway, are
//! what an agent's renewals of its Lease are elsewhere.
//!
//! The agent's own report counts, and nothing judges beside it. Times are of a monotonic clock: a
//! step of the machine's time loses no cluster.

mod observed_lease;

use std::time::{Duration, Instant};

use serde_json::Value;

use super::condition::{self, AVAILABLE, Condition};
use super::delivery::{DELIVERY_ANNOTATION, Mode};
use super::heartbeat::{DEFAULT_SECONDS, grace};
use crate::fields::field;
use crate::outcome::Outcome;

pub use self::observed_lease::ObservedLease;

/// Reasons of the condition where answers made it.
const REASONS: [&str; 3] = [ANSWERS, NOT_READY, UNREACHABLE];
const ANSWERS: &str = "MemberAnswers";
const NOT_READY: &str = "MemberNotReady";
const UNREACHABLE: &str = "MemberUnreachable";
/// Between two probes of one member, whatever its Lease would be.
const SHORTEST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_mins(5);
/// The least until the probe at the end of a grace.
const LEAST: Duration = Duration::from_secs(1);
/// Failures in a row that make a loss, if its grace is over.
const FAILURES: u32 = 2;
/// Answers in a row that end one: each change moves workloads.
const RETURNED: u32 = 3;
/// Periods for which an answer is evidence of health. No grace is shorter: what counts as health at
/// its end was seen after its beginning.
const FRESH: u32 = 2;
/// Of fewer clusters, all may be lost.
const FEW: usize = 3;
/// The longest grace: a cluster's own agent may write `leaseDurationSeconds`, and one that is never
/// lost keeps its workloads for ever. That of 3600 s.
const LONGEST_GRACE: Duration = Duration::from_hours(5);
/// While any answers, a loss is held for so long, or for its grace, if that is longer. A cluster
/// that goes silent at the same time as another, and stays so, holds it no longer than that.
const HELD: Duration = Duration::from_mins(30);

/// What is known of one member by its answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    /// Between two probes.
    period: Duration,
    /// Its condition says that it is not available.
    is_lost: bool,
    /// It answered, as we saw or as its condition says.
    has_answered: bool,
    /// The last probe that says anything of it, unless there was none.
    outcome: Option<Outcome>,
    /// Probes since, in a row: those that did not get as far as the member.
    blind: u32,
    /// The same, while others were asked: it is this cluster that is not.
    unasked: u32,
    /// Its last answer.
    healthy: Option<Instant>,
    /// In a row: probes that were answered.
    well: u32,
    /// Failed probes in a row.
    failures: u32,
    /// The first failed probe of those in a row, while the way to members was not in doubt.
    since: Option<Instant>,
    /// The same, in doubt or not.
    silent: Option<Instant>,
    /// It was silent while the way was in doubt, and has not answered since.
    was_doubted: bool,
    /// Since when that is so while others answer.
    held: Option<Instant>,
    /// Among many that are silent, until it answers.
    turn: Turn,
}

/// Whether a loss may be reported, where one is reported after the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Turn {
    /// It does not ask.
    #[default]
    None,
    /// Others go before.
    Waits,
    Has,
}

/// What decides whether a cluster is available: one at a time, since two would overwrite each
/// other. The follower of Leases asks too, before it reports an agent as silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The agent that renews its Lease; and of its silence, the follower of Leases
    /// (`ocm-registration`). So too where nothing is delivered, and without an acceptance.
    Agent,
    /// The part `availability`, by the member's answers.
    Answers,
}

/// What the clusters that are judged say of the way to one of them, which is silent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answering {
    /// Those that are not lost already.
    untold: usize,
    /// Of these, those that answered lately.
    healthy: usize,
    /// Of the untold, those that ever answered.
    known: usize,
    /// Of these, those whose silence, if they are silent, is not older
    /// than this one's.
    judged: usize,
    /// Of these, those that answered lately, or since this one fell silent.
    witnesses: usize,
}

/// Whose word counts for whether `cluster` (a `ManagedCluster`) is available. `is_silent`: its
/// agent did not renew its Lease for a grace.
pub fn owner(cluster: &Value, is_silent: bool) -> Owner {
    let is_free = || reason(cluster).is_none_or(|reason| is_ours(reason) || reason == condition::LEASE_UPDATE_STOPPED);
    let is_accepted = field(cluster, "spec.hubAcceptsClient").and_then(Value::as_bool) == Some(true);
    if is_accepted && is_delivered(cluster) && (is_silent || is_free()) { Owner::Answers } else { Owner::Agent }
}

/// Whether it was answers that made its condition: only then its taints are for answers to set.
pub fn is_by_answers(cluster: &Value) -> bool {
    is_delivered(cluster) && reason(cluster).is_some_and(is_ours)
}

fn is_ours(reason: &str) -> bool {
    REASONS.contains(&reason)
}

fn is_delivered(cluster: &Value) -> bool {
    let annotation = cluster["metadata"]["annotations"].get(DELIVERY_ANNOTATION).and_then(Value::as_str);
    Mode::read(annotation).is_some()
}

fn reason(cluster: &Value) -> Option<&str> {
    condition::find(cluster, AVAILABLE)?["reason"].as_str()
}

/// What its condition says: status and reason.
fn said(cluster: &Value) -> (Option<&str>, Option<&str>) {
    (condition::status(cluster, AVAILABLE), reason(cluster))
}

/// Whether answers lost it, and its condition says so.
fn is_told(cluster: &Value) -> bool {
    let said = said(cluster);
    said == (Some("False"), Some(NOT_READY)) || said == (Some("Unknown"), Some(UNREACHABLE))
}

/// Between two probes: as often as an agent renews its Lease, within limits.
fn period(cluster: &Value) -> Duration {
    let seconds = field(cluster, "spec.leaseDurationSeconds").and_then(Value::as_u64);
    let seconds = seconds.filter(|seconds| *seconds > 0).unwrap_or(DEFAULT_SECONDS.unsigned_abs());
    Duration::from_secs(seconds).clamp(SHORTEST, LONGEST)
}

/// How long probes fail until it is lost: as long as an agent may be silent, two periods at least,
/// and five hours at most.
pub fn patience(cluster: &Value) -> Duration {
    asked(cluster).clamp(FRESH * period(cluster), LONGEST_GRACE)
}

/// How long an agent of it may be silent, as it says.
fn asked(cluster: &Value) -> Duration {
    Duration::from_millis(grace(cluster).unsigned_abs())
}

/// Reported with a loss whose grace was shorter than the cluster says.
fn capped(cluster: &Value) -> &'static str {
    if asked(cluster) > LONGEST_GRACE {
        " Its leaseDurationSeconds counts as 3600: no cluster may be silent to probes for more than five hours."
    } else {
        ""
    }
}

// === impl Answers ===

impl Answers {
    /// Of a member that was never probed.
    pub fn begun(cluster: &Value) -> Self {
        let mut begun = Self::default();
        begun.of(cluster);
        begun
    }

    /// Of `cluster` as it is now.
    pub fn of(&mut self, cluster: &Value) {
        self.period = period(cluster);
        self.is_lost = condition::status(cluster, AVAILABLE).is_some_and(|status| status != "True");
        self.has_answered |= said(cluster) == (Some("True"), Some(ANSWERS));
    }

    /// A probe ended so. `others_answer`: another member did, within the last period.
    ///
    /// A probe that did not get as far as the member gives it all its time anew: what the member
    /// did meanwhile is unknown. But where others answer, the way as a whole is not at fault: it
    /// counts as nothing.
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

    /// What `fleet` says of its silence. While less than half of those that ever answered do, its
    /// loss is reported when it `is_next`, which is asked once it is over: others that answered
    /// since show that there was a way, and a way that goes bit by bit would take nearly all with
    /// it.
    #[must_use]
    pub fn weighed(self, fleet: Answering, cluster: &Value, now: Instant, is_next: impl FnOnce() -> bool) -> Self {
        // Nothing is left to report: the next one is another cluster.
        if is_told(cluster) {
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

    /// The way to members is in doubt, as `fleet` says: its time begins with the first failed probe
    /// after that. But no longer than half an hour, or its grace, if others answer meanwhile: then
    /// all that time counts, if it `is_next`, which is asked then.
    #[must_use]
    fn doubted(self, fleet: Answering, cluster: &Value, now: Instant, is_next: impl FnOnce() -> bool) -> Self {
        let is_held = self.is_away() && self.failures >= FAILURES;
        let held = self.held.or(Some(now)).filter(|_| is_held && !fleet.is_blind());
        let lasted = held.map(|held| now.saturating_duration_since(held));
        if lasted.is_some_and(|lasted| lasted >= HELD.max(patience(cluster))) && (self.turn == Turn::Has || is_next()) {
            return Self { since: held, held, was_doubted: false, turn: Turn::Has, ..self };
        }
        // A cluster in doubt has its own time: it goes before no other meanwhile.
        let turn = if self.turn == Turn::Waits { Turn::None } else { self.turn };
        Self { since: None, held, was_doubted: self.was_doubted || is_held, turn, ..self }
    }

    /// Whether the last probe failed at the member, or on the way to it.
    pub fn is_away(&self) -> bool {
        matches!(self.outcome, Some(Outcome::NotReady | Outcome::Unreachable(_)))
    }

    /// Whether it is away, or said to be.
    pub fn is_doubtful(&self) -> bool {
        self.is_away() || self.is_lost
    }

    /// Whether nothing is to be said of it, since the way to members was in doubt while it was
    /// silent: until it answers, or is lost by itself.
    pub fn is_held(&self) -> bool {
        (self.was_doubted || self.turn == Turn::Waits) && !self.is_lost
    }

    /// Whether its loss waits to be reported, and it has been silent for longer than `other`: where
    /// one is reported after the other, a cluster that fell silent again and again is not first
    /// each time.
    pub fn waits_before(&self, other: &Self) -> bool {
        let is_before = self.silent.zip(other.silent).is_some_and(|(own, other)| own < other);
        self.turn == Turn::Waits && !self.is_lost && self.blind == 0 && is_before
    }

    /// Whether it answered within `time` before `now`, and did not fail since.
    fn has_answered_within(&self, time: Duration, now: Instant) -> bool {
        let within = |at: Instant| now.saturating_duration_since(at) <= time;
        !self.is_away() && self.healthy.is_some_and(within)
    }

    /// Whether probes do not get as far as it, again and again, and do elsewhere.
    fn is_unasked(&self) -> bool {
        self.unasked > FRESH
    }

    /// Whether it answered since `other` fell silent.
    fn has_answered_since(&self, other: &Self) -> bool {
        self.healthy.zip(other.silent).is_some_and(|(at, silent)| at >= silent)
    }

    /// Whether it was silent already when `other` fell silent: what ails them both would show
    /// within a period of the other's.
    fn was_silent_before(&self, other: &Self) -> bool {
        let before = self.silent.zip(other.silent).map(|(own, other)| other.saturating_duration_since(own));
        before.is_some_and(|before| before > FRESH * other.period)
    }

    /// Whether it answered within the time from one probe of `other` to the next.
    pub fn answers_beside(&self, other: &Self, now: Instant) -> bool {
        self.has_answered_within(other.period, now)
    }

    /// The condition `Available` of `cluster` as it is to be at `now`; none if it is so, and while
    /// nothing is known. `is_new`: a probe ended just now. Without one, no loss is reported.
    pub fn condition(&self, cluster: &Value, now: Instant, is_new: bool) -> Option<Condition> {
        let condition = match self.outcome.as_ref()? {
            Outcome::NotProbed(_) => return None,
            Outcome::Healthy if is_told(cluster) && self.well < RETURNED => return None,
            Outcome::Healthy => Condition::available("True", ANSWERS, "The member's API server is ready.".to_owned()),
            // Why a member is away may be another at each probe: that is no news of the cluster,
            // and another taint would begin its time anew.
            _ if !is_new
                || self.turn == Turn::Waits
                || self.blind > 0
                || !self.is_over(cluster, now)
                || is_told(cluster) =>
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

    /// Whether it has been away for as long as it may be.
    fn is_over(&self, cluster: &Value, now: Instant) -> bool {
        let lasted = self.since.map(|since| now.saturating_duration_since(since));
        self.failures >= FAILURES && lasted.is_some_and(|lasted| lasted >= patience(cluster))
    }

    /// Until the next probe: as often as an agent renews its Lease, and at the moment at which a
    /// member that is away is said to be so.
    pub fn wait(&self, cluster: &Value, now: Instant) -> Duration {
        let lasted = self.since.map(|since| now.saturating_duration_since(since));
        let left = lasted.map_or(Duration::ZERO, |lasted| patience(cluster).saturating_sub(lasted));
        if left.is_zero() { self.period } else { self.period.min(left).max(LEAST) }
    }
}

// === impl Answering ===

impl Answering {
    /// Of `one`, which is silent, and all `others`, at `now`. Those that are lost already count no
    /// more, and those that never answered not yet; nor do those that cannot be probed, or whose
    /// registration is broken, while others are asked.
    ///
    /// Each cluster decides what it answers, and when. So one that was silent before this one was
    /// says nothing of the way, and one that answered since says that there is one: a cluster that
    /// answers now and then, or takes hours to be lost, holds no other's loss up.
    pub fn of<'a>(one: &'a Answers, others: impl Iterator<Item = &'a Answers>, now: Instant) -> Self {
        let mut fleet = Self::default();
        for member in others.chain([one]).filter(|member| !member.is_lost && !member.is_unasked()) {
            let is_healthy = member.has_answered_within(FRESH * member.period, now);
            let is_witness = is_healthy || member.has_answered_since(one);
            fleet.untold += 1;
            fleet.healthy += usize::from(is_healthy);
            fleet.known += usize::from(member.has_answered);
            fleet.judged += usize::from(is_witness || member.has_answered && !member.was_silent_before(one));
            fleet.witnesses += usize::from(is_witness);
        }
        fleet
    }

    /// Whether the way to members is rather at fault than they are: of three or more less than half
    /// have answered, or none answers. (Kubernetes' node lifecycle controller evicts nothing either
    /// when all nodes are lost.)
    pub fn is_doubtful(self) -> bool {
        let Self { judged, witnesses, .. } = self;
        (judged >= FEW && witnesses * 2 < judged) || self.is_blind()
    }

    /// Whether, of three or more that ever answered, less than half do now.
    fn is_strained(self) -> bool {
        self.known >= FEW && self.healthy * 2 < self.known
    }

    /// Whether none answers: then no loss is reported, however long that lasts.
    pub fn is_blind(self) -> bool {
        self.untold >= FEW && self.healthy == 0
    }
}

#[cfg(test)]
mod tests;
