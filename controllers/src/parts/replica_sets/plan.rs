//! The next actions for a set. No IO and no clock.

mod leaving;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use delivery::rollout::{Existing, Rollout, RolloutStatus, roll_out};
use delivery::work::replica_set::{PlacementReference, ReplicaSet, Work, is_so};
use time::OffsetDateTime;

use super::world::{Chosen, ObservedSet, World};
use crate::wakes::Key;

/// Holds a set until its works are removed.
pub const FINALIZER: &str = "work.open-cluster-management.io/manifest-work-cleanup";

/// How long works of clusters that are no longer chosen stay after the last change of decisions: a
/// cluster that moves from one decision to another is in neither meanwhile.
const SETTLING: time::Duration = time::Duration::seconds(2);

/// The next step for a set.
#[derive(Debug)]
pub enum Step {
    /// The set does not exist any more, or only waits for others.
    Rest,
    /// Add the finalizer to the set: these are all its finalizers then.
    Begin(Finalizers),
    /// The set is being deleted: remove its works, then its finalizer, unless it must wait.
    End { surplus: Vec<Surplus>, release: Option<Finalizers> },
    /// Nothing can be done for the set: its status gives the reason.
    Refuse(Refusal),
    /// Deploy this very set, not a later one of its name.
    Deploy(Arc<ReplicaSet>, Plan),
}

/// Finalizers that a set must have, for the version that was judged.
#[derive(Debug)]
pub struct Finalizers {
    pub version: String,
    pub all: Vec<String>,
}

/// Why nothing can be done for a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The set's name makes no label for its works.
    Name(String),
    Unreadable(String),
}

#[derive(Debug, Default)]
pub struct Plan {
    pub surplus: Vec<Surplus>,
    pub due: Vec<Due>,
    pub verdicts: Vec<Verdict>,
    /// A Placement does not exist: those after it are ignored, as upstream does.
    pub is_missing: bool,
    /// Works stay because decisions name fewer clusters than their Placement counts, or because it
    /// has not counted yet.
    pub is_held: bool,
    /// Clusters that several Placements of the set choose.
    pub shared: BTreeSet<String>,
    pub handovers: Handovers,
    pub again: Option<OffsetDateTime>,
}

/// A work to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surplus {
    pub cluster: String,
    pub name: String,
    pub uid: String,
}

/// A cluster that must get the template. The content is built only at its turn: a template may have
/// half a mebibyte, and there may be a thousand of these.
#[derive(Debug, PartialEq, Eq)]
pub struct Due {
    pub cluster: String,
    pub placement: String,
    pub change: Change,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    Create,
    /// Patch the work with this name, at this version.
    Patch {
        name: String,
        version: String,
    },
}

/// The progress of a Placement.
#[derive(Debug)]
pub struct Verdict {
    pub placement: String,
    /// Number of clusters that the Placement counts; none before it has counted.
    pub selected: Option<usize>,
    pub groups: usize,
    pub chosen: BTreeSet<String>,
    pub is_stopped: bool,
    pub error: Option<String>,
}

/// Clusters that one Placement hands over to another, by both Placements, while works of the first
/// exist.
pub type Handovers = BTreeMap<(String, String), BTreeSet<String>>;

/// The works of a Placement, by cluster.
type Kept<'w> = BTreeMap<&'w str, &'w Work>;

pub fn step(world: &World, key: &Key, now: OffsetDateTime) -> Step {
    let Some(known) = world.set(key) else { return Step::Rest };
    if known.set.is_ending {
        return end(world, key, known);
    }
    if !known.finalizers.iter().any(|one| one == FINALIZER) {
        let all = known.finalizers.iter().cloned().chain([FINALIZER.to_owned()]).collect();
        return Step::Begin(Finalizers { version: known.version.clone(), all });
    }
    let label = match (known.set.key(), &known.set.unreadable) {
        (Err(why), _) => return Step::Refuse(Refusal::Name(why)),
        (_, Some(why)) => return Step::Refuse(Refusal::Unreadable(why.clone())),
        (Ok(label), None) => label,
    };
    let plan = Deployment { world, key, set: &known.set, label, now, decided_at: known.decided_at }.plan();
    Step::Deploy(Arc::clone(&known.set), plan)
}

fn end(world: &World, key: &Key, known: &ObservedSet) -> Step {
    if !known.finalizers.iter().any(|one| one == FINALIZER) {
        return Step::Rest;
    }
    let works = || world.works(key);
    let surplus: Vec<Surplus> = works().filter(|work| !work.is_ending).map(Surplus::of).collect();
    let is_waiting = known.set.waits_for_works && works().next().is_some();
    let all = || known.finalizers.iter().filter(|one| *one != FINALIZER).cloned().collect();
    let release = (!is_waiting).then(|| Finalizers { version: known.version.clone(), all: all() });
    Step::End { surplus, release }
}

// === impl Step ===

impl Step {
    /// The remaining finalizers of a set that is being deleted, unless it must wait.
    pub fn release(self) -> Option<Finalizers> {
        if let Self::End { release, .. } = self { release } else { None }
    }
}

struct Deployment<'w> {
    world: &'w World,
    key: &'w Key,
    set: &'w ReplicaSet,
    label: String,
    now: OffsetDateTime,
    decided_at: OffsetDateTime,
}

// === impl Deployment ===

impl<'w> Deployment<'w> {
    fn plan(&self) -> Plan {
        let mut plan = Plan::default();
        let mut references: Vec<&PlacementReference> = Vec::new();
        for reference in &self.set.placements {
            if references.iter().all(|known| known.name != reference.name) {
                references.push(reference);
            }
        }
        let mut kept: BTreeMap<&str, Kept<'w>> = BTreeMap::new();
        let (mut leaving, mut unnamed) = (Vec::new(), Vec::new());
        for work in self.sorted() {
            let is_named = references.iter().any(|reference| reference.name == work.placement());
            let of_placement = kept.entry(work.placement()).or_default();
            if is_named && !of_placement.contains_key(work.cluster.as_str()) {
                of_placement.insert(&work.cluster, work);
            } else if !work.is_ending {
                (if is_named { &mut leaving } else { &mut unnamed }).push(work);
            }
        }
        for reference in references {
            let placement = (self.key.0.clone(), reference.name.clone());
            let Some(chosen) = self.world.placement(&placement) else {
                plan.is_missing = true;
                break;
            };
            let kept = kept.remove(reference.name.as_str()).unwrap_or_default();
            leaving.extend(self.follow(&mut plan, reference, chosen, &kept));
        }
        leaving.extend(self.unnamed(&mut plan, unnamed));
        self.release(&mut plan, &leaving);
        plan.handovers = self.handovers(&plan);
        plan
    }

    /// The works. If there are several for one cluster, the first stays: one that is not being
    /// deleted, then the oldest, then, of those created in the same second, one that was applied.
    fn sorted(&self) -> Vec<&'w Work> {
        let mut works: Vec<&Work> = self.world.works(self.key).collect();
        works.sort_by_key(|work| (work.is_ending, &work.created, !work.was_applied(), &work.cluster, &work.name));
        works
    }

    /// Plans for one Placement. Returns its works of clusters that it no longer chooses.
    fn follow(
        &self,
        plan: &mut Plan,
        reference: &PlacementReference,
        chosen: &Chosen,
        kept: &Kept<'w>,
    ) -> Vec<&'w Work> {
        let mut verdict = Verdict {
            placement: reference.name.clone(),
            selected: chosen.selected,
            groups: chosen.groups,
            chosen: BTreeSet::new(),
            is_stopped: false,
            error: None,
        };
        let existing: Vec<Existing<'_>> =
            kept.values().filter(|work| work.is_current).map(|work| work.existing()).collect();
        let groups = self.world.groups(&(self.key.0.clone(), reference.name.clone()));
        let groups = groups.unwrap_or_else(|why| {
            verdict.error = Some(why);
            Vec::new()
        });
        let mut left = Vec::new();
        if verdict.error.is_none() {
            verdict.chosen = groups.iter().flat_map(|group| &group.clusters).map(|name| (*name).to_owned()).collect();
            match roll_out(&reference.rollout_strategy, &groups, &existing, self.now) {
                Ok(rollout) => left = self.take(plan, &mut verdict, &rollout, kept),
                Err(invalid) => verdict.error = Some(format!("placement {}: {invalid}", reference.name)),
            }
        }
        let before = plan.verdicts.iter().flat_map(|other| other.chosen.intersection(&verdict.chosen));
        plan.shared.extend(before.cloned().collect::<Vec<_>>());
        plan.verdicts.push(verdict);
        left
    }

    fn take(&self, plan: &mut Plan, verdict: &mut Verdict, rollout: &Rollout<'_>, kept: &Kept<'w>) -> Vec<&'w Work> {
        verdict.is_stopped = rollout.has_too_many_failures;
        plan.look_again(rollout.recheck_at);
        let due = rollout.to_roll_out.iter().filter(|due| due.state == RolloutStatus::ToApply);
        let due = due.filter_map(|due| self.due(due.cluster, &verdict.placement, kept.get(due.cluster).copied()));
        plan.due.extend(due);
        // Upstream leaves works that do not have the template yet.
        let left = kept.values().filter(|work| !work.is_ending && !verdict.chosen.contains(&work.cluster));
        self.settled(plan, verdict.is_incomplete(), left.copied().collect())
    }

    /// The `works` that may go now: all of them, or none while the plan must wait.
    fn settled(&self, plan: &mut Plan, is_incomplete: bool, works: Vec<&'w Work>) -> Vec<&'w Work> {
        if works.is_empty() {
            return works;
        }
        if is_incomplete {
            plan.is_held = true;
        } else if let Some(end) = self.unsettled() {
            plan.look_again(Some(end));
        } else {
            return works;
        }
        Vec::new()
    }

    /// Time until which a cluster's absence proves nothing; none if decisions have settled.
    fn unsettled(&self) -> Option<OffsetDateTime> {
        if self.world.are_decisions_listed() {
            return Some(self.now + SETTLING);
        }
        // If the clock was set back, there is no wait.
        let end = self.decided_at + SETTLING;
        (self.now..=self.now + SETTLING).contains(&end).then_some(end).filter(|end| *end > self.now)
    }

    /// The write for a cluster; none if the work is up to date, or is being deleted.
    fn due(&self, cluster: &str, placement: &str, known: Option<&Work>) -> Option<Due> {
        let change = match known {
            None => Change::Create,
            Some(known) if known.is_ending || is_so(known, self.set, &self.label, placement) => return None,
            Some(known) => Change::Patch { name: known.name.clone(), version: known.resource_version.clone() },
        };
        Some(Due { cluster: cluster.to_owned(), placement: placement.to_owned(), change })
    }
}

// === impl Plan ===

impl Plan {
    fn look_again(&mut self, at: Option<OffsetDateTime>) {
        self.again = self.again.into_iter().chain(at).min();
    }

    /// Whether a work is for a cluster that its Placement chooses.
    pub fn chooses(&self, work: &Work) -> bool {
        self.verdicts.iter().any(|verdict| verdict.has(work))
    }
}

// === impl Verdict ===

impl Verdict {
    /// Whether decisions name fewer clusters than the Placement counts. A Placement that was
    /// recreated, or restored, counts none until it has been scheduled.
    fn is_incomplete(&self) -> bool {
        self.selected.is_none_or(|selected| selected > self.chosen.len())
    }

    pub fn has(&self, work: &Work) -> bool {
        work.placement() == self.placement && self.chosen.contains(&work.cluster)
    }
}

// === impl Surplus ===

impl Surplus {
    fn of(work: &Work) -> Self {
        Self { cluster: work.cluster.clone(), name: work.name.clone(), uid: work.uid.clone() }
    }
}

#[cfg(test)]
mod tests;
