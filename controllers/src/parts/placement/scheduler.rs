//! Runs each Placement until its own writes no longer change its result.

use std::sync::Arc;
use std::time::Duration;

use kube::Resource as _;
use kube::api::DynamicObject;
use kube::runtime::controller::Action;
use parking_lot::RwLock;
use time::OffsetDateTime;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::NAME;
use super::kinds::Of;
use super::plan::{Plan, Step, step, step_aside};
use super::slots::{AT_THE_LATEST, Lanes, RunPermit};
use super::world::World;
use crate::calls::now_text;
use crate::events::{Events, Reason};
use crate::metrics::Metrics;
use crate::parts::hub_calls::LeaderClient;
use crate::parts::worker::{self, Failure, Tries, Worker, judged, key};
use crate::wakes::Key;

/// Runs in a row that may change the decisions while no other input changes. Upstream has no limit.
const ROUNDS: usize = 3;
/// Time between two runs that changes cause, for Placements with expressions. The first change runs
/// it at once.
const PAUSE: Duration = Duration::from_secs(1);
/// Most comparisons, of clusters with rules, in a run that needs no thread of its own. They take a
/// few milliseconds.
const LOOKS: usize = 10_000;

/// Concurrent writes of decisions, for all Placements.
pub const WRITES: usize = 128;

pub struct Scheduler {
    pub hub: LeaderClient,
    pub world: Arc<RwLock<World>>,
    pub events: Events,
    pub metrics: Metrics,
    pub tries: Tries,
    /// Slots for runs with expressions, which may take a third of a second each, on threads of
    /// their own: one such run at a time, and one at a time of those that took few steps the last
    /// time.
    pub lanes: Lanes,
    /// [`WRITES`] permits.
    pub writes: Semaphore,
}

/// When and where a run may happen.
enum May {
    AtOnce,
    /// Now, on a thread of its own.
    Aside,
    /// With the slot for costly runs, or the one for quick runs.
    InTurn {
        is_quick: bool,
    },
    NotBefore(OffsetDateTime),
}

// === impl Worker ===

impl Worker for Scheduler {
    const KIND: &'static str = "Placement";

    async fn work(&self, object: &DynamicObject) -> Result<Action, Failure> {
        let key = key(object);
        let done = self.settle(object, &key).await;
        let is_there = || self.world.read().placement(&key).is_some();
        judged(done, &self.tries, &key, is_there, || self.metrics.failed(NAME))
    }

    fn tries(&self) -> &Tries {
        &self.tries
    }
}

// === impl Scheduler ===

impl Scheduler {
    /// Forgets a Placement that is gone.
    pub fn forget(&self, key: &Key) {
        self.tries.forget(&key.0, &key.1);
        self.lanes.forget(key);
        self.metrics.placements.forget(key);
    }

    /// Runs the Placement until nothing changes.
    async fn settle(&self, object: &DynamicObject, key: &Key) -> Result<Action, Failure> {
        let (mut inputs, first) = match self.resume(key) {
            Ok(resumed) => resumed,
            Err(wait) => return Ok(Action::requeue(wait)),
        };
        for round in first..=ROUNDS {
            let plan = match self.step(key, inputs.is_none()).await? {
                Step::Rest => return Ok(Action::await_change()),
                Step::Wait { until } => {
                    self.pause(key, inputs.map(|inputs| (inputs, round)));
                    return Ok(worker::at(Some(until)));
                }
                Step::LeaveAlone { manager, until } => {
                    self.leave_alone(object, &manager);
                    return Ok(worker::at(Some(until)));
                }
                Step::Do(plan) => plan,
            };
            // The Placement is in the queue again because of another change.
            if *inputs.get_or_insert(plan.inputs) != plan.inputs {
                return Ok(Action::await_change());
            }
            let is_settled = !plan.writes_decisions();
            if round == ROUNDS && !is_settled {
                self.leave_unstable(object);
                return Ok(worker::at(plan.again));
            }
            self.carry_out(object, key, &plan).await?;
            if is_settled {
                if plan.held.is_some() {
                    self.hold(object);
                } else if !plan.is_misconfigured && self.world.read().is_unconfirmed(key, plan.inputs) {
                    self.world.write().confirm(key, plan.inputs);
                }
                return Ok(worker::at(plan.again));
            }
        }
        Ok(Action::await_change())
    }

    /// The input and the round that it waited in for its turn, if nothing changed since. The
    /// error is the time that it must wait.
    fn resume(&self, key: &Key) -> Result<(Option<u64>, usize), Duration> {
        let mut world = self.world.write();
        let Some(known) = world.placement_mut(key) else { return Ok((None, 0)) };
        match known.paused.take().filter(|(inputs, _)| *inputs == known.inputs) {
            Some((inputs, round)) => Ok((Some(inputs), round)),
            // What costs more is held up where it is its turn.
            None if known.has_expressions() => Ok((None, 0)),
            None => known.caused.take(Instant::now()).map(|()| (None, 0)),
        }
    }

    fn pause(&self, key: &Key, round: Option<(u64, usize)>) {
        if let Some(known) = self.world.write().placement_mut(key) {
            known.paused = round;
        }
    }

    /// Runs once. `is_first`: a change caused the run, not its own writes.
    async fn step(&self, key: &Key, is_first: bool) -> Result<Step, Failure> {
        let is_quick = match self.may(key, is_first) {
            May::AtOnce => return Ok(self.counted(step(&self.world.read(), key, worker::moment(), &now_text()))),
            May::NotBefore(until) => return Ok(Step::Wait { until }),
            May::Aside => return self.aside(key, None).await,
            May::InTurn { is_quick } => is_quick,
        };
        let Some(slot) = self.lanes.take(key, is_quick) else {
            return Ok(Step::Wait { until: worker::moment() + AT_THE_LATEST });
        };
        if let Some(known) = self.world.write().placement_mut(key).filter(|_| is_first) {
            known.ran_at = Some(worker::moment());
        }
        self.aside(key, Some(slot)).await
    }

    /// Runs on a thread of its own, because the current thread also renews this leader's Lease.
    async fn aside(&self, key: &Key, slot: Option<RunPermit>) -> Result<Step, Failure> {
        let (world, own) = (Arc::clone(&self.world), key.clone());
        let run = move || {
            // Held until the run ends, even if its result is no longer needed.
            let _slot = slot;
            let before = world.read().placement(&own).map(|known| Arc::clone(&known.prepared));
            let step = step_aside(&world, &own, worker::moment(), &now_text());
            // The steps of one generation say nothing about another.
            let is_same = |now: &Arc<_>| before.as_ref().is_some_and(|before| Arc::ptr_eq(before, now));
            if let (Step::Do(plan), Some(known)) = (&step, world.write().placement_mut(&own))
                && is_same(&known.prepared)
            {
                known.steps = Some(plan.steps);
            }
            step
        };
        let ended = |error| Failure::Reported(format!("its run did not come to an end: {error}"));
        tokio::task::spawn_blocking(run).await.map(|step| self.counted(step)).map_err(ended)
    }

    fn may(&self, key: &Key, is_first: bool) -> May {
        let world = self.world.read();
        let Some(known) = world.placement(key) else { return May::AtOnce };
        if !known.has_expressions() {
            return if world.looks(known) > LOOKS { May::Aside } else { May::AtOnce };
        }
        match known.ran_at.map(|ran| (ran, ran + PAUSE)) {
            // After the clock was set back, there is nothing to wait for.
            Some((ran, end)) if is_first && (ran..end).contains(&worker::moment()) => May::NotBefore(end),
            _ => May::InTurn { is_quick: known.took_few_steps() },
        }
    }

    fn counted(&self, step: Step) -> Step {
        if let Step::Do(plan) = &step {
            self.metrics.placements.ran(plan.took);
        }
        step
    }

    async fn carry_out(&self, object: &DynamicObject, key: &Key, plan: &Plan) -> Result<(), Failure> {
        self.write_decisions(object, &plan.changes, &plan.surplus, &plan.warning).await?;
        if !plan.changes.is_empty() && !plan.scores.is_empty() {
            self.tell(object, Reason::ScoreUpdate, plan.scores.clone());
        }
        self.warn(object, key, plan);
        if let Some(status) = &plan.status {
            self.write_status(object, key, status).await?;
        }
        // A Placement that is gone by now has no metrics.
        if self.world.read().placement(key).is_some() {
            self.metrics.placements.settle(key, plan.clusters, plan.is_misconfigured);
        }
        Ok(())
    }

    /// Publishes a new warning if no decision's event reports it.
    fn warn(&self, object: &DynamicObject, key: &Key, plan: &Plan) {
        let mut world = self.world.write();
        let Some(known) = world.placement_mut(key) else { return };
        if known.warned == plan.warning {
            return;
        }
        known.warned.clone_from(&plan.warning);
        if plan.changes.is_empty() && !plan.warning.is_empty() {
            let note = format!("Decisions of placement {} in namespace {}: {}", key.1, key.0, plan.warning);
            self.tell(object, Reason::DecisionWarning, note);
        }
    }

    fn leave_alone(&self, object: &DynamicObject, manager: &str) {
        let note = format!(
            "{manager} also writes the decisions of this Placement: they stay as they are until it has written \
             nothing for 10 minutes, or the Placement is changed; stop one of the two schedulers"
        );
        self.tell(object, Reason::SchedulerConflict, note);
    }

    fn hold(&self, object: &DynamicObject) {
        self.metrics.placements.held();
        let note = "many clusters, sets or bindings disappeared at once, or the definition of their kind was being \
                    deleted: for 10 minutes, its decisions keep the clusters that left because of that";
        self.tell(object, Reason::RemovalHeld, note.to_owned());
    }

    fn leave_unstable(&self, object: &DynamicObject) {
        let note = format!(
            "its own decisions change its choice each time: after {ROUNDS} rounds its decisions stay as they are; give \
             Steady a non-negative weight"
        );
        self.tell(object, Reason::Unstable, note);
    }

    pub(super) fn tell(&self, object: &DynamicObject, reason: Reason, note: String) {
        self.events.publish(object.object_ref(&Of::Placement.resource()), reason, note);
    }
}
