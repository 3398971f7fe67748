//! Which works are removed now, of those that the choice no longer covers.
//!
//! If another work of the set takes over the objects, the old work stays until the other has them:
//! a workload that one Placement hands over to another never leaves its member.

use std::collections::{HashMap, HashSet};

use delivery::condition::{self, Status};
use delivery::work::kind;
use delivery::work::replica_set::Work;
use time::{Duration, OffsetDateTime};

use super::{Deployment, Handovers, Plan, Surplus, Verdict};

/// How long a work waits for another that cannot be applied, from the moment at which the other's
/// status first said so. After that, those of its objects that the other does not have leave the
/// member.
pub(super) const HANDOVER: Duration = Duration::minutes(10);

/// Whether another work of the set has taken over its objects on the member.
#[derive(Debug, PartialEq, Eq)]
enum Handover {
    Done,
    /// Nothing is known of the other work, or it does not exist yet. The agent that would apply it
    /// is also the one that would remove the old work's objects: while the agent is silent, no
    /// object goes.
    Awaited,
    /// The other work could not be applied; the old one waits until this time.
    Until(OffsetDateTime),
}

// === impl Deployment ===

impl<'w> Deployment<'w> {
    /// Works of Placements that the set no longer names. Which of their clusters keep a work is
    /// unknown until all named Placements have chosen.
    pub(super) fn unnamed(&self, plan: &mut Plan, works: Vec<&'w Work>) -> Vec<&'w Work> {
        if plan.is_missing || plan.verdicts.iter().any(|verdict| verdict.error.is_some()) {
            return Vec::new();
        }
        if plan.verdicts.is_empty() {
            return works;
        }
        let is_incomplete = plan.verdicts.iter().any(Verdict::is_incomplete);
        self.settled(plan, is_incomplete, works)
    }

    /// The hand-overs from one Placement to another, whether their works wait, may go, or are being
    /// deleted.
    pub(super) fn handovers(&self, plan: &Plan) -> Handovers {
        let mut all = Handovers::new();
        for work in self.world.works(self.key).filter(|work| !plan.chooses(work)) {
            if let Some(heir) = heir(plan, work) {
                let between = (work.placement().to_owned(), heir.to_owned());
                all.entry(between).or_default().insert(work.cluster.clone());
            }
        }
        all
    }

    /// Removes the works whose objects need not wait for another work.
    pub(super) fn release(&self, plan: &mut Plan, leaving: &[&'w Work]) {
        if leaving.is_empty() {
            return;
        }
        let left: HashSet<(&str, &str)> = leaving.iter().map(|work| (&*work.cluster, &*work.name)).collect();
        let mut staying: HashMap<&str, Vec<&Work>> = HashMap::new();
        for work in self.world.works(self.key).filter(|work| !work.is_ending && plan.chooses(work)) {
            if !left.contains(&(work.cluster.as_str(), work.name.as_str())) {
                staying.entry(&work.cluster).or_default().push(work);
            }
        }
        for work in leaving {
            let others = staying.get(work.cluster.as_str()).map_or(&[][..], Vec::as_slice);
            match handover(plan, work, others) {
                Handover::Awaited => {}
                Handover::Until(end) if end > self.now => plan.look_again(Some(end)),
                Handover::Until(_) | Handover::Done => plan.surplus.push(Surplus::of(work)),
            }
        }
    }
}

/// The Placement that takes over the objects of a work; none if they go with the work.
fn heir<'p>(plan: &'p Plan, work: &Work) -> Option<&'p str> {
    // A work without a status has nothing on the member.
    condition::find(&work.conditions, kind::APPLIED)?;
    let chosen = plan.verdicts.iter().find(|verdict| verdict.chosen.contains(&work.cluster));
    chosen.map(|verdict| verdict.placement.as_str())
}

fn handover(plan: &Plan, work: &Work, others: &[&Work]) -> Handover {
    if heir(plan, work).is_none() {
        return Handover::Done;
    }
    let others = others.iter().map(|other| taken_over(other));
    others.reduce(Handover::sooner).unwrap_or(Handover::Awaited)
}

/// Whether a work that stays has the objects, according to its status.
fn taken_over(work: &Work) -> Handover {
    let told = condition::find(&work.conditions, kind::APPLIED);
    match told.filter(|one| one.observed_generation == work.generation) {
        None => Handover::Awaited,
        Some(told) if told.status == Status::True => Handover::Done,
        Some(told) => {
            told.last_transition_time.map_or(Handover::Awaited, |since| Handover::Until(since.saturating_add(HANDOVER)))
        }
    }
}

// === impl Handover ===

impl Handover {
    /// If several works stay, one that has the objects is enough; while another may still get them,
    /// it is awaited.
    fn sooner(self, other: Self) -> Self {
        match (self, other) {
            (Self::Done, _) | (_, Self::Done) => Self::Done,
            (Self::Awaited, _) | (_, Self::Awaited) => Self::Awaited,
            (Self::Until(one), Self::Until(another)) => Self::Until(one.max(another)),
        }
    }
}
