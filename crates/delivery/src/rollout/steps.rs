//! The steps of a rollout: some clusters at a time, or group by group.

use std::collections::{BTreeMap, BTreeSet};

use placement::prepared::Size;
use placement::taints::earlier;
use time::{Duration, OffsetDateTime};

use super::state::{Existing, RolloutStatus};
use super::strategy::DecisionGroup;
use super::{Due, Rollout};

/// How long to wait.
#[derive(Debug, Clone, Copy)]
pub struct Waits {
    /// How long a success must last.
    pub success: Duration,
    /// How long a cluster may be progressing or failed; `None` for ever.
    pub deadline: Option<Duration>,
    pub now: OffsetDateTime,
}

/// At most `most` clusters are busy: first those that already are, by name, then new ones, by name.
/// None starts once more than `failures` failed.
pub fn per_cluster<'a>(
    clusters: &BTreeSet<&'a str>,
    most: usize,
    failures: usize,
    waits: &Waits,
    current: &[&'a Existing<'a>],
) -> Rollout<'a> {
    let mut found = Rollout::default();
    let mut failed = 0;
    for one in current {
        let mut state = one.state;
        if !found.has_too_many_failures || state != RolloutStatus::ToApply {
            state = found.judge(one, waits);
        }
        failed += usize::from(matches!(state, RolloutStatus::TimeOut | RolloutStatus::Failed));
        found.has_too_many_failures = failed > failures;
        if found.to_roll_out.len() >= most {
            return found;
        }
    }
    if found.has_too_many_failures {
        return found;
    }
    let known: BTreeSet<&str> = current.iter().map(|one| one.cluster).collect();
    let room = most.saturating_sub(found.to_roll_out.len());
    // Upstream checks the size only after it has taken one.
    let new = clusters.difference(&known).take(room.max(1));
    found.to_roll_out.extend(new.map(|cluster| Due { cluster, state: RolloutStatus::ToApply }));
    found
}

/// All clusters of a group at once, and the next group when only failed clusters are still busy. A
/// group with more than `failures` of them ends the rollout.
pub fn per_group<'a>(
    groups: &[&'a DecisionGroup<'a>],
    failures: Size,
    waits: &Waits,
    current: &[&'a Existing<'a>],
) -> Rollout<'a> {
    let mut found = Rollout::default();
    let mut states: BTreeMap<&str, RolloutStatus> = BTreeMap::new();
    for one in current.iter().filter(|one| one.state != RolloutStatus::ToApply) {
        states.insert(one.cluster, found.judge(one, waits));
    }
    let mut all_failed = 0;
    for group in groups {
        let clusters: BTreeSet<&'a str> = group.clusters.iter().copied().collect();
        let most = failures.within(clusters.len()).unwrap_or(0);
        let mut failed = 0;
        for cluster in clusters {
            match states.get(cluster) {
                Some(RolloutStatus::TimeOut | RolloutStatus::Failed) => {
                    failed += 1;
                    found.has_too_many_failures = failed > most;
                }
                Some(_) => {}
                None => found.to_roll_out.push(Due { cluster, state: RolloutStatus::ToApply }),
            }
        }
        all_failed += failed;
        if found.to_roll_out.len() > all_failed || found.has_too_many_failures {
            break;
        }
    }
    found
}

// === impl Rollout ===

impl<'a> Rollout<'a> {
    /// Puts a work into its list. Returns its state, which may be that its time is over.
    fn judge(&mut self, one: &'a Existing<'a>, waits: &Waits) -> RolloutStatus {
        let end = |wait: Duration| one.since.unwrap_or(waits.now).saturating_add(wait);
        let due = Due { cluster: one.cluster, state: one.state };
        let end = match one.state {
            RolloutStatus::TimeOut | RolloutStatus::Skip => return one.state,
            RolloutStatus::ToApply => None,
            RolloutStatus::Succeeded if end(waits.success) <= waits.now => return one.state,
            RolloutStatus::Succeeded => Some(end(waits.success)),
            RolloutStatus::Progressing | RolloutStatus::Failed => waits.deadline.map(end),
        };
        if end.is_some_and(|end| end <= waits.now) {
            self.timed_out.push(one.cluster);
            return RolloutStatus::TimeOut;
        }
        self.recheck_at = earlier(self.recheck_at, end);
        self.to_roll_out.push(due);
        one.state
    }
}
