//! The status of a set after a pass.

use std::collections::BTreeSet;

use delivery::work::replica_set::{PlacementRollout, SetStatus, Work, invalid_name, not_found, status, unreadable};
use time::OffsetDateTime;

use super::plan::{Plan, Refusal, Verdict};
use super::world::World;
use crate::metrics::SetState;
use crate::wakes::Key;

/// The report about a set.
pub struct Report {
    /// The version of the set whose status it is.
    pub version: String,
    pub status: SetStatus,
    /// Whether it differs from the set's status.
    pub is_news: bool,
    pub state: SetState,
}

/// The report for a set that was refused. None if the set is gone.
pub fn of_refusal(world: &World, key: &Key, refusal: &Refusal, now: OffsetDateTime) -> Option<Report> {
    let set = &world.set(key)?.set;
    let status = match refusal {
        Refusal::Name(why) => invalid_name(set, why, now),
        Refusal::Unreadable(why) => unreadable(set, why, now),
    };
    update(world, key, status, SetState::Invalid)
}

/// The report for a set whose `plan` was carried out. None if the set is gone.
pub fn of_plan(world: &World, key: &Key, plan: &Plan, now: OffsetDateTime) -> Option<Report> {
    let set = &world.set(key)?.set;
    if plan.is_missing {
        return update(world, key, not_found(set, now), SetState::Invalid);
    }
    // A work that will be removed, or that stays only until decisions are complete, does not count
    // as chosen.
    let works: Vec<&Work> = world.works(key).filter(|work| plan.chooses(work)).collect();
    let rollouts: Vec<PlacementRollout<'_>> = plan.verdicts.iter().map(|verdict| verdict.rollout(&works)).collect();
    let found = status(set, &rollouts, &works, now);
    let is_complete = delivery::condition::is_true(&found.conditions, "PlacementRolledOut");
    let state = if plan.verdicts.iter().any(|verdict| verdict.error.is_some()) {
        SetState::Invalid
    } else if is_complete {
        SetState::Complete
    } else if plan.verdicts.iter().any(|verdict| verdict.is_stopped) {
        SetState::Stopped
    } else {
        SetState::Progressing
    };
    update(world, key, found, state)
}

fn update(world: &World, key: &Key, status: SetStatus, state: SetState) -> Option<Report> {
    let known = world.set(key)?;
    Some(Report { version: known.version.clone(), is_news: status != known.set.status, status, state })
}

// === impl Verdict ===

impl Verdict {
    fn rollout(&self, works: &[&Work]) -> PlacementRollout<'_> {
        let existing = works.iter().filter(|work| !work.is_ending && work.is_current && self.has(work));
        let existing: BTreeSet<&str> = existing.map(|work| work.cluster.as_str()).collect();
        PlacementRollout {
            name: &self.placement,
            selected: self.selected.unwrap_or_default(),
            groups: self.groups,
            existing: existing.len(),
            error: self.error.as_deref(),
        }
    }
}
