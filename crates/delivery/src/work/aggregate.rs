//! Conditions of a work from those of its manifests.

use std::collections::BTreeMap;

use time::OffsetDateTime;

use super::kind;
use super::options::options;
use super::spec::{ConditionRule, ManifestConfig};
use super::status::ManifestCondition;
use crate::condition::{Condition, Status, find, remove, set};
use crate::identity::Identity;

/// Prefix of the reasons of conditions from rules.
const BY_RULE: &str = "ConditionRule";
/// Reasons of [`default_progressing`].
const APPLYING: &str = "Applying";
const COMPLETED: &str = "Completed";

#[derive(Debug, Default)]
struct Counts<'a> {
    of_true: usize,
    of_false: usize,
    of_unknown: usize,
    /// The last that is not empty.
    message: &'a str,
}

/// `Available`, and each condition that rules made for any manifest, by type.
pub fn aggregate(manifests: &[ManifestCondition], generation: i64) -> Vec<Condition> {
    let mut all: BTreeMap<&str, Counts<'_>> = BTreeMap::from([(kind::AVAILABLE, Counts::default())]);
    let conditions = manifests.iter().flat_map(|manifest| &manifest.conditions);
    for one in conditions.filter(|one| one.kind == kind::AVAILABLE || is_by_rule(one)) {
        all.entry(&one.kind).or_default().count(one);
    }
    let made = all.into_iter().map(|(kind, counts)| match kind {
        kind::AVAILABLE => counts.available(manifests.len()),
        kind => counts.by_rules(kind),
    });
    made.map(|condition| condition.at(generation)).collect()
}

/// Removes conditions that rules made for another generation: their rule is gone.
pub fn prune(conditions: &mut Vec<Condition>, generation: i64) {
    conditions.retain(|one| !is_by_rule(one) || one.observed_generation == generation);
}

/// Removes conditions that rules made and that none of `rules` makes: for an object on which these
/// cannot be evaluated. `Complete` stays: a job that is gone would run again.
pub fn prune_others(conditions: &mut Vec<Condition>, rules: &[ConditionRule]) {
    let is_made = |kind: &str| kind == kind::COMPLETE || rules.iter().any(|rule| rule.condition == kind);
    conditions.retain(|one| !is_by_rule(one) || is_made(&one.kind));
}

/// `Progressing` of a `ReplicaSet`'s work without a rule for it: True until its objects are applied
/// and available. Upstream has none then, and its rollouts wait for ever.
pub fn default_progressing(conditions: &[Condition], generation: i64) -> Condition {
    let is_done = [kind::APPLIED, kind::AVAILABLE].iter().all(|kind| {
        find(conditions, kind).is_some_and(|one| one.status == Status::True && one.observed_generation == generation)
    });
    let made = if is_done {
        Condition::new(kind::PROGRESSING, Status::False, COMPLETED, "All resources are applied and available")
    } else {
        Condition::new(kind::PROGRESSING, Status::True, APPLYING, "Not all resources are applied and available")
    };
    made.at(generation)
}

/// Sets [`default_progressing`]. Another generation is another progress, however soon it is
/// completed: a rollout waits for its success to last from then on.
pub fn set_default_progressing(conditions: &mut Vec<Condition>, generation: i64, now: OffsetDateTime) {
    let progressing = default_progressing(conditions, generation);
    if find(conditions, kind::PROGRESSING).is_some_and(|known| known.observed_generation != generation) {
        remove(conditions, kind::PROGRESSING);
    }
    set(conditions, progressing, now);
}

/// Removes a [`default_progressing`] that was set before. Another writer's stays.
pub fn take_default_progressing(conditions: &mut Vec<Condition>) {
    conditions.retain(|one| one.kind != kind::PROGRESSING || ![APPLYING, COMPLETED].contains(&one.reason.as_str()));
}

/// Whether a rule of the work sets `Progressing` for one of its `objects`, so that there is no
/// [`default_progressing`]. A well-known rule sets none.
pub fn has_progressing_rule<'o>(configs: &[ManifestConfig], objects: impl IntoIterator<Item = &'o Identity>) -> bool {
    let makes = |rule: &ConditionRule| rule.kind == "CEL" && rule.condition == kind::PROGRESSING;
    objects.into_iter().any(|object| options(object, configs).condition_rules.iter().any(makes))
}

/// Whether a condition of a work is one of those made here: others may write their own besides.
pub fn is_made(condition: &Condition) -> bool {
    let is_default = condition.kind == kind::PROGRESSING && [APPLYING, COMPLETED].contains(&condition.reason.as_str());
    [kind::APPLIED, kind::AVAILABLE].contains(&condition.kind.as_str()) || is_by_rule(condition) || is_default
}

fn is_by_rule(condition: &Condition) -> bool {
    condition.reason.starts_with(BY_RULE) && !kind::OURS.contains(&condition.kind.as_str())
}

// === impl Counts ===

impl<'a> Counts<'a> {
    fn count(&mut self, condition: &'a Condition) {
        match condition.status {
            Status::True => self.of_true += 1,
            Status::False => self.of_false += 1,
            Status::Unknown => self.of_unknown += 1,
        }
        if !condition.message.is_empty() {
            self.message = &condition.message;
        }
    }

    fn available(&self, total: usize) -> Condition {
        let made = |status, reason: &str, message: String| Condition::new(kind::AVAILABLE, status, reason, message);
        if self.of_false > 0 {
            let message = format!("{} of {total} resources are not available", self.of_false);
            made(Status::False, "ResourcesNotAvailable", message)
        } else if self.of_unknown > 0 {
            let message = format!("{} of {total} resources have unknown status", self.of_unknown);
            made(Status::Unknown, "ResourcesStatusUnknown", message)
        } else if self.of_true == 0 {
            // The space at its end is upstream's.
            made(Status::Unknown, "ResourcesStatusUnknown", "cannot get any available resource ".to_owned())
        } else {
            made(Status::True, "ResourcesAvailable", "All resources are available".to_owned())
        }
    }

    /// False if one is False; `Progressing` is True if one is True.
    fn by_rules(&self, kind: &str) -> Condition {
        let status = if kind == kind::PROGRESSING {
            match (self.of_true, self.of_unknown) {
                (0, 0) => Status::False,
                (0, _) => Status::Unknown,
                _ => Status::True,
            }
        } else {
            match (self.of_false, self.of_unknown, self.of_true) {
                (0, 0, 1..) => Status::True,
                (0, ..) => Status::Unknown,
                _ => Status::False,
            }
        };
        let total = self.of_true + self.of_false + self.of_unknown;
        let message = match self.message {
            message if total == 1 && !message.is_empty() => message.to_owned(),
            _ => format!("Aggregated from {total} manifest conditions"),
        };
        Condition::new(kind, status, "ConditionRulesAggregated", message)
    }
}
