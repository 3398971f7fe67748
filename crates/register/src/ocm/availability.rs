//! Whether a cluster without an agent is available: its member's answers, through the gateway, are
//! what an agent's renewals of its Lease are elsewhere.
//!
//! An agent that speaks is believed, and nobody judges beside it. Times are milliseconds since
//! 1970.

use std::time::Duration;

use serde_json::Value;

use super::condition::{self, AVAILABLE, Condition};
use super::delivery::{DELIVERY, Mode};
use super::heartbeat::{DEFAULT_SECONDS, grace};
use crate::fields::field;
use crate::outcome::Outcome;

/// Reasons of the condition where answers made it.
const REASONS: [&str; 3] = [ANSWERS, NOT_READY, UNREACHABLE];
const ANSWERS: &str = "MemberAnswers";
const NOT_READY: &str = "MemberNotReady";
const UNREACHABLE: &str = "MemberUnreachable";
/// The least between two probes of one member.
const LEAST: Duration = Duration::from_secs(1);
/// Of fewer clusters, all may be lost.
const FEW: usize = 3;

/// What is known of one member by its answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answers {
    /// It answered; or nothing was known before.
    last: i64,
    /// The last probe, unless it was never probed.
    outcome: Option<Outcome>,
}

/// Whether `cluster` (a `ManagedCluster`) is judged by answers: it is delivered to without an
/// agent, and none says whether it is available, or it fell silent.
pub fn is_judged(cluster: &Value) -> bool {
    let reason = reason(cluster);
    is_delivered(cluster)
        && reason.is_none_or(|reason| REASONS.contains(&reason) || reason == condition::LEASE_UPDATE_STOPPED)
}

/// Whether it was answers that made its condition. Then the silence of an agent says nothing new.
pub fn is_by_answers(cluster: &Value) -> bool {
    is_delivered(cluster) && reason(cluster).is_some_and(|reason| REASONS.contains(&reason))
}

/// Whether so few of the `all` clusters that are judged have been heard lately that the way to them
/// is rather at fault than they are: less than half of those that count as available, where there
/// are three or more. Those that are lost already count no more. (Kubernetes' node lifecycle
/// controller evicts nothing either when all nodes are lost.)
pub fn is_doubtful(heard: usize, available: usize, all: usize) -> bool {
    all >= FEW && heard * 2 < available
}

/// Whether the hub says that it is available.
pub fn is_available(cluster: &Value) -> bool {
    condition::status(cluster, AVAILABLE) == Some("True")
}

fn is_delivered(cluster: &Value) -> bool {
    let annotation = cluster["metadata"]["annotations"].get(DELIVERY).and_then(Value::as_str);
    Mode::read(annotation).is_some()
}

fn reason(cluster: &Value) -> Option<&str> {
    condition::find(cluster, AVAILABLE)?["reason"].as_str()
}

/// Between two probes: as often as an agent renews its Lease.
pub fn period(cluster: &Value) -> Duration {
    let seconds = field(cluster, "spec.leaseDurationSeconds").and_then(Value::as_u64);
    seconds.filter(|seconds| *seconds > 0).map_or(Duration::from_secs(DEFAULT_SECONDS.unsigned_abs()), |seconds| {
        Duration::from_secs(seconds.min(u64::from(i32::MAX.unsigned_abs())))
    })
}

// === impl Answers ===

impl Answers {
    /// Of a member that was never probed: it has all its time from now on.
    pub fn begun(now: i64) -> Self {
        Self { last: now, outcome: None }
    }

    /// A probe ended so. One that did not get as far as the member gives it all its time anew: what
    /// it did meanwhile, nobody knows.
    #[must_use]
    pub fn after(self, outcome: Outcome, now: i64) -> Self {
        let answered = matches!(outcome, Outcome::Healthy | Outcome::NotProbed(_));
        Self { last: if answered { now } else { self.last }, outcome: Some(outcome) }
    }

    /// Nothing can be said of it for now, since the way to it is at fault: it has all its time from
    /// now on.
    #[must_use]
    pub fn held(self, now: i64) -> Self {
        Self { last: now, ..self }
    }

    /// Whether a probe has got as far as the member.
    pub fn has_spoken(&self) -> bool {
        !matches!(self.outcome, None | Some(Outcome::NotProbed(_)))
    }

    /// Whether it answered the last probe.
    pub fn is_healthy(&self) -> bool {
        self.outcome == Some(Outcome::Healthy)
    }

    /// Whether the last probe failed at the member, or on the way to it.
    pub fn is_away(&self) -> bool {
        matches!(self.outcome, Some(Outcome::NotReady | Outcome::Unreachable(_)))
    }

    /// The condition `Available` of `cluster` as it is to be at `now`; none if it is so, and while
    /// nothing is known.
    pub fn told(&self, cluster: &Value, now: i64) -> Option<Condition> {
        let condition = match self.outcome.as_ref()? {
            Outcome::NotProbed(_) => return None,
            Outcome::Healthy => Condition::available("True", ANSWERS, "The member's API server is ready.".to_owned()),
            _ if now < self.last.saturating_add(grace(cluster)) => return None,
            Outcome::NotReady => {
                let message = "The member's API server says that it is not ready.".to_owned();
                Condition::available("False", NOT_READY, message)
            }
            Outcome::Unreachable(why) => {
                Condition::available("Unknown", UNREACHABLE, format!("The member does not answer: {why}."))
            }
        };
        // Why a member is away may be another at each probe: that is no news of the cluster, and
        // each other taint would begin its tolerations anew.
        let is_lost = is_by_answers(cluster) && !is_available(cluster) && reason(cluster) != Some(ANSWERS);
        let is_known = condition::status(cluster, AVAILABLE) == Some(condition.status)
            && reason(cluster) == Some(condition.reason);
        let is_news = !is_known && (condition.status == "True" || !is_lost);
        is_news.then_some(condition)
    }

    /// Until the next probe: as often as an agent renews its Lease, and at the moment at which a
    /// member that is away is said to be so.
    pub fn wait(&self, cluster: &Value, now: i64) -> Duration {
        let period = period(cluster);
        let left = self.last.saturating_add(grace(cluster)).saturating_sub(now);
        match u64::try_from(left) {
            Ok(left @ 1..) if self.is_away() => period.min(Duration::from_millis(left)).max(LEAST),
            _ => period.max(LEAST),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_900_000_000_000;
    const GRACE: i64 = 300_000;

    fn cluster(delivery: &str, condition: Option<(&str, &str)>) -> Value {
        let conditions: Vec<Value> = condition
            .iter()
            .map(|(status, reason)| json!({"type": AVAILABLE, "status": status, "reason": reason}))
            .collect();
        json!({"metadata": {"annotations": {DELIVERY: delivery}}, "status": {"conditions": conditions}})
    }

    fn away() -> Outcome {
        Outcome::Unreachable("a request failed at the member".to_owned())
    }

    #[test]
    fn where_an_agent_speaks_nobody_else_judges() {
        for (delivery, condition, judged) in [
            ("push", None, true),
            ("adopt", None, true),
            ("pull", None, false),
            ("push", Some(("True", "ManagedClusterAvailable")), false),
            ("push", Some(("False", "ManagedClusterKubeAPIServerUnavailable")), false),
            ("push", Some(("Unknown", "ManagedClusterLeaseUpdateStopped")), true),
            ("push", Some(("Unknown", UNREACHABLE)), true),
            ("pull", Some(("True", ANSWERS)), false),
        ] {
            assert_eq!(is_judged(&cluster(delivery, condition)), judged, "{delivery} {condition:?}");
        }
        assert!(!is_judged(&json!({})));
        assert!(is_by_answers(&cluster("push", Some(("True", ANSWERS)))));
        assert!(!is_by_answers(&cluster("push", None)) && !is_by_answers(&cluster("", Some(("True", ANSWERS)))));
    }

    #[test]
    fn one_that_answers_is_available_at_once_and_one_that_does_not_after_its_grace() {
        let new = cluster("push", None);
        let answers = Answers::begun(NOW);
        assert_eq!(answers.told(&new, NOW), None, "nothing is known");
        let answers = answers.after(Outcome::Healthy, NOW);
        let told = answers.told(&new, NOW).map(|told| (told.status, told.reason));
        assert_eq!(told, Some(("True", ANSWERS)));
        let known = cluster("push", Some(("True", ANSWERS)));
        assert_eq!((answers.told(&known, NOW), answers.wait(&known, NOW)), (None, Duration::from_mins(1)));
        let answers = answers.after(away(), NOW + 59_000);
        assert!(answers.is_away() && answers.told(&known, NOW + GRACE - 1).is_none());
        let told = answers.told(&known, NOW + GRACE).map(|told| (told.status, told.reason, told.message));
        let message = "The member does not answer: a request failed at the member.".to_owned();
        assert_eq!(told, Some(("Unknown", UNREACHABLE, message)));
        let lost = cluster("push", Some(("Unknown", UNREACHABLE)));
        let other = answers.after(Outcome::Unreachable("no answer in time".to_owned()), NOW + GRACE);
        assert_eq!(other.told(&lost, NOW + GRACE), None, "another cause is no news");
        let back = other.after(Outcome::Healthy, NOW + 2 * GRACE);
        assert!(back.told(&lost, NOW + 2 * GRACE).is_some_and(|told| told.status == "True"));
    }

    #[test]
    fn a_gateway_that_is_away_says_nothing_of_members() {
        let known = cluster("push", Some(("True", ANSWERS)));
        let answers = Answers::begun(NOW).after(away(), NOW + 200_000);
        let blind = answers.after(Outcome::NotProbed("the hub has no answer".to_owned()), NOW + GRACE);
        assert_eq!((blind.is_away(), blind.told(&known, NOW + GRACE)), (false, None));
        let after = blind.after(away(), NOW + GRACE + 1);
        assert!(after.told(&known, NOW + 2 * GRACE - 1).is_none() && after.told(&known, NOW + 2 * GRACE).is_some());
    }

    #[test]
    fn one_that_says_that_it_is_not_ready_is_not_available() {
        let answers = Answers::begun(NOW).after(Outcome::NotReady, NOW);
        let told = answers.told(&cluster("push", None), NOW + GRACE).map(|told| (told.status, told.reason));
        assert_eq!(told, Some(("False", NOT_READY)));
    }

    #[test]
    fn the_last_probe_is_at_the_end_of_its_grace() {
        let mut short = cluster("push", None);
        short["spec"] = json!({"leaseDurationSeconds": 2});
        let answers = Answers::begun(NOW).after(away(), NOW + 1000);
        let waits = [1000, 9000, 9900, 10_000, 60_000].map(|after| answers.wait(&short, NOW + after).as_millis());
        assert_eq!(waits, [2000, 1000, 1000, 2000, 2000]);
        short["spec"] = json!({"leaseDurationSeconds": 0});
        assert_eq!(answers.wait(&short, NOW + GRACE), Duration::from_mins(1));
    }

    #[test]
    fn most_of_a_fleet_is_not_lost_at_once() {
        let fleets = [(0, 1, 1), (0, 2, 2), (2, 3, 3), (1, 3, 3), (1, 2, 3), (0, 2, 3), (2, 4, 4), (1, 4, 4)];
        let doubtful: Vec<(usize, usize, usize)> = fleets
            .into_iter()
            .chain([(500, 1000, 1000), (499, 1000, 1000)])
            .filter(|(heard, available, all)| is_doubtful(*heard, *available, *all))
            .collect();
        assert_eq!(doubtful, [(1, 3, 3), (0, 2, 3), (1, 4, 4), (499, 1000, 1000)]);
    }

    #[test]
    fn what_a_lost_one_was_lost_by_is_kept_and_a_condition_that_fits_no_reason_is_mended() {
        let answers = Answers::begun(NOW).after(Outcome::NotReady, NOW);
        let told = |condition| answers.told(&cluster("push", Some(condition)), NOW + GRACE).map(|told| told.status);
        assert_eq!(told(("Unknown", UNREACHABLE)), None, "another taint would begin all tolerations anew");
        assert_eq!(told(("True", ANSWERS)), Some("False"));
        assert_eq!(told(("True", NOT_READY)), Some("False"), "somebody wrote the status alone");
        let back = answers.clone().after(Outcome::Healthy, NOW);
        let told = back.told(&cluster("push", Some(("Unknown", ANSWERS))), NOW).map(|told| told.status);
        assert_eq!(told, Some("True"));
    }

    #[test]
    fn one_of_which_nothing_could_be_said_has_all_its_time_anew() {
        let answers = Answers::begun(NOW).after(away(), NOW).held(NOW + GRACE).after(away(), NOW + GRACE + 1);
        let known = cluster("push", Some(("True", ANSWERS)));
        assert!(answers.told(&known, NOW + 2 * GRACE - 1).is_none() && answers.told(&known, NOW + 2 * GRACE).is_some());
    }
}
