//! What is to be done for a set now. No IO and no clock.

mod leaving;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use delivery::rollout::{Existing, Rollout, RolloutStatus, roll_out};
use delivery::work::replica_set::{PlacementReference, ReplicaSet, Work, is_so};
use time::OffsetDateTime;

use super::world::{Chosen, ObservedSet, World};
use crate::wakes::Key;

/// Keeps a set until its works are removed.
pub const FINALIZER: &str = "work.open-cluster-management.io/manifest-work-cleanup";

/// Works of clusters that are chosen no more stay so long after the last change of decisions: a
/// cluster that moves from one decision to another is in neither meanwhile.
const SETTLING: time::Duration = time::Duration::seconds(2);

/// The next step for a set.
#[derive(Debug)]
pub enum Step {
    /// It is not there any more, or only waits for others.
    Rest,
    /// It gets its finalizer: these are all.
    Begin(Finalizers),
    /// It is being deleted: works go, then its finalizer, if nothing is waited for.
    End { surplus: Vec<Surplus>, release: Option<Finalizers> },
    /// Nothing can be done for it: its status says why.
    Refuse(Refusal),
    /// Of this set, and no later one of its name.
    Deploy(Arc<ReplicaSet>, Plan),
}

/// Finalizers that a set is to have, at the version that was judged.
#[derive(Debug)]
pub struct Finalizers {
    pub version: String,
    pub all: Vec<String>,
}

/// Why nothing can be done for a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Its works could have no label.
    Name(String),
    Unreadable(String),
}

#[derive(Debug, Default)]
pub struct Plan {
    pub surplus: Vec<Surplus>,
    pub due: Vec<Due>,
    pub verdicts: Vec<Verdict>,
    /// A Placement is not there: those after it are not looked at, as upstream.
    pub is_missing: bool,
    /// Works stay because decisions name fewer clusters than their Placement counts, or it has not
    /// counted yet.
    pub is_held: bool,
    /// Clusters that several Placements of the set choose.
    pub shared: BTreeSet<String>,
    pub handovers: Handovers,
    pub again: Option<OffsetDateTime>,
}

/// A work that is to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surplus {
    pub cluster: String,
    pub name: String,
    pub uid: String,
}

/// A cluster that is to have the template. What is written is made when it is its turn: a template
/// may have half a mebibyte, and there may be a thousand of these.
#[derive(Debug, PartialEq, Eq)]
pub struct Due {
    pub cluster: String,
    pub placement: String,
    pub change: Change,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    Create,
    /// Of the work with this name, at this version.
    Patch {
        name: String,
        version: String,
    },
}

/// How far a Placement is.
#[derive(Debug)]
pub struct Verdict {
    pub placement: String,
    /// What the Placement counts; none while it does not.
    pub selected: Option<usize>,
    pub groups: usize,
    pub chosen: BTreeSet<String>,
    pub is_stopped: bool,
    pub error: Option<String>,
}

/// Clusters that one Placement hands to another, by the two, while works of the first are there.
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
    /// The finalizers that are left of one that is being deleted, if nothing is waited for.
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

    /// The works, and of several for one cluster that first which stays: not one that is leaving,
    /// else the oldest, and of the same second one that was applied.
    fn sorted(&self) -> Vec<&'w Work> {
        let mut works: Vec<&Work> = self.world.works(self.key).collect();
        works.sort_by_key(|work| (work.is_ending, &work.created, !work.was_applied(), &work.cluster, &work.name));
        works
    }

    /// A Placement's turn. Returns its works of clusters that it chooses no more.
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
        // Upstream leaves those that do not have the template yet.
        let left = kept.values().filter(|work| !work.is_ending && !verdict.chosen.contains(&work.cluster));
        self.settled(plan, verdict.is_incomplete(), left.copied().collect())
    }

    /// Those of `works` that may go now: all of them, or none while something is waited for.
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

    /// Until when nothing is concluded of a cluster's absence; none: it is settled.
    fn unsettled(&self) -> Option<OffsetDateTime> {
        if self.world.are_decisions_listed() {
            return Some(self.now + SETTLING);
        }
        // A clock that was set back is nothing to wait for.
        let end = self.decided_at + SETTLING;
        (self.now..=self.now + SETTLING).contains(&end).then_some(end).filter(|end| *end > self.now)
    }

    /// What is to be written for a cluster; none, if it is so, or the work is leaving.
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
    /// Whether decisions name fewer clusters than are counted. A Placement that was made anew, or
    /// restored, counts none until it has been scheduled.
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
