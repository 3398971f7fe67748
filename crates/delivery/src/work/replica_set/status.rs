//! The status of a set, with upstream's reasons.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::{ReplicaSet, Work};
use crate::condition::{Condition, Status, find, is_true, set as put};
use crate::work::kind;

const VERIFIED: &str = "PlacementVerified";
const ROLLED_OUT: &str = "PlacementRolledOut";
const APPLIED: &str = "ManifestworkApplied";
const EMPTY: &str = "PlacementDecisionEmpty";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SetStatus {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    pub summary: Summary,
    pub placement_summary: Vec<PlacementSummary>,
}

/// Counts of works. Upstream leaves `desiredTotal` and `updated` 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Summary {
    pub total: usize,
    pub progressing: usize,
    pub available: usize,
    pub degraded: usize,
    pub applied: usize,
    pub desired_total: usize,
    pub updated: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PlacementSummary {
    pub name: String,
    pub available_decision_groups: String,
    pub summary: Summary,
}

/// The progress of a Placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacementRollout<'a> {
    pub name: &'a str,
    /// `status.numberOfSelectedClusters` of the Placement.
    pub selected: usize,
    /// Entries of its `status.decisionGroups`.
    pub groups: usize,
    /// Clusters with a work that has the template, or was given it in this run.
    pub existing: usize,
    /// Why its rollout strategy cannot be followed: nothing is done for it then.
    pub error: Option<&'a str>,
}

/// The status of `set` after a run with this progress of its Placements.
pub fn status(set: &ReplicaSet, rollouts: &[PlacementRollout<'_>], works: &[&Work], now: OffsetDateTime) -> SetStatus {
    let mut found = SetStatus { conditions: set.status.conditions.clone(), ..SetStatus::default() };
    let (mut selected, mut succeeded) = (0, 0);
    for rollout in rollouts.iter().filter(|rollout| rollout.error.is_none()) {
        let current = works.iter().copied().filter(|work| work.placement() == rollout.name && work.is_current);
        let current: Vec<&Work> = current.collect();
        selected += rollout.selected;
        succeeded += current.iter().filter(|work| !work.is_ending && work.has_succeeded()).count();
        let summary = Summary::of(rollout.existing, &current);
        found.summary.add(&summary);
        found.placement_summary.push(PlacementSummary {
            name: rollout.name.to_owned(),
            available_decision_groups: format!(
                "{} ({} / {} clusters applied)",
                rollout.groups, rollout.existing, rollout.selected
            ),
            summary,
        });
    }
    // Upstream forgets at this point that it has reported the error.
    let error = rollouts.iter().find_map(|rollout| rollout.error);
    let (reason, message) = match (error, found.summary.total) {
        (Some(error), _) => ("NotAsExpected", error),
        (None, 0) => (EMPTY, ""),
        (None, _) => ("AsExpected", ""),
    };
    found.put(VERIFIED, reason, message, now);
    let is_complete = selected == succeeded && error.is_none();
    found.put(ROLLED_OUT, if is_complete { "Complete" } else { "Progressing" }, "", now);
    found.put_applied(now);
    found
}

/// The status if a Placement of the set does not exist: nothing is done.
pub fn not_found(set: &ReplicaSet, now: OffsetDateTime) -> SetStatus {
    let mut found = set.status.clone();
    found.put(VERIFIED, "PlacementDecisionNotFound", "", now);
    found
}

/// The status if the set cannot be read: nothing is done.
pub fn unreadable(set: &ReplicaSet, why: &str, now: OffsetDateTime) -> SetStatus {
    let mut found = set.status.clone();
    found.put(VERIFIED, "NotAsExpected", why, now);
    found
}

/// The status if the set's key is not valid for a label: nothing is done.
pub fn invalid_name(set: &ReplicaSet, message: &str, now: OffsetDateTime) -> SetStatus {
    let mut found = set.status.clone();
    found.put(APPLIED, "InvalidManifestWorkName", message, now);
    found
}

// === impl SetStatus ===

impl SetStatus {
    /// Sets a condition, which is True only for the good reason of its type.
    fn put(&mut self, kind: &str, reason: &str, message: &str, now: OffsetDateTime) {
        let good = if kind == ROLLED_OUT { "Complete" } else { "AsExpected" };
        let status = if reason == good { Status::True } else { Status::False };
        put(&mut self.conditions, Condition::new(kind, status, reason, message), now);
    }

    fn put_applied(&mut self, now: OffsetDateTime) {
        let summary = self.summary;
        let is_empty = find(&self.conditions, VERIFIED).is_some_and(|one| one.reason == EMPTY);
        let reason = match summary {
            Summary { total: 0, .. } if is_empty => EMPTY,
            Summary { total, available, progressing: 0, degraded: 0, .. } if total > 0 && available == total => {
                "AsExpected"
            }
            Summary { total: 1.., progressing: 1.., degraded: 0, .. } => "Processing",
            _ => "NotAsExpected",
        };
        self.put(APPLIED, reason, "", now);
    }
}

// === impl Summary ===

impl Summary {
    fn of(total: usize, works: &[&Work]) -> Self {
        let alive = works.iter().filter(|work| !work.is_ending);
        let count = |kind: &str| alive.clone().filter(|work| is_true(&work.conditions, kind)).count();
        Self {
            total,
            applied: count(kind::APPLIED),
            available: count(kind::AVAILABLE),
            progressing: count(kind::PROGRESSING),
            degraded: count(kind::DEGRADED),
            ..Self::default()
        }
    }

    fn add(&mut self, other: &Self) {
        self.total += other.total;
        self.applied += other.applied;
        self.available += other.available;
        self.progressing += other.progressing;
        self.degraded += other.degraded;
    }
}
