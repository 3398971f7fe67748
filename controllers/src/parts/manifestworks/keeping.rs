//! Decides what a work needs: runs a pass over it if one is due, reports its status, and sets when
//! it is looked at again.

use std::sync::Arc;
use std::time::Duration;

use delivery::executor::Executor;
use delivery::work::{ManifestWorkExecutor, ManifestWorkSpec, applied_name};
use kube::Resource as _;
use kube::api::DynamicObject;
use kube::runtime::controller::Action;
use net::backoff::Backoff;
use tokio::time::Instant;

use super::clusters::Mode;
use super::failure::Failure;
use super::memory::Memory;
use super::pass::Pass;
use super::target::{Slot, Target};
use super::work::{Work, works};
use super::{MOST_MANIFESTS, Part, applied, is_due, owes, removal};
use crate::events::Reason;
use crate::metrics::WorkState;

impl Part {
    pub(super) async fn keep(
        &self,
        work: &mut Work,
        target: &Arc<Target>,
        slot: &Slot,
        mode: Mode,
        memory: &mut Memory,
    ) -> Result<Action, Failure> {
        let is_complete = match memory.judge(work, Instant::now()) {
            Ok(is_complete) => is_complete,
            Err(again) => return Ok(Action::requeue(again)),
        };
        if !work.is_held() {
            self.hold(work, memory, true).await?;
        }
        if is_complete {
            self.metrics.delivery.settle(&work.key, WorkState::complete());
        }
        let (spec, executor, name) = match self.readable(work) {
            Ok(readable) => readable,
            // The status of a complete work stays as reported.
            Err(_) if is_complete => return Ok(next(self.tell_status(work, memory).await?)),
            Err(why) => return Ok(next(self.refuse(work, memory, &why).await?)),
        };
        if memory.applied_again.is_some_and(|at| at <= Instant::now()) {
            memory.applied_again = None;
            memory.owed.insert(applied::identity(&name));
        }
        let is_whole = owes(work, target, memory);
        let wants = is_whole || is_due(memory);
        let rest = memory.heat.wait(Instant::now(), work.generation).filter(|_| wants);
        if wants && rest.is_none() {
            memory.heat.passed(Instant::now(), work.generation);
            let on_hub = work.status.clone();
            if let Some(status) = &memory.status {
                work.status.clone_from(status);
            }
            let executor = executor.as_ref();
            let pass =
                Pass { part: self, target, slot, work, spec: &spec, executor, mode, name, is_whole, is_complete };
            let ran = pass.run(memory).await;
            work.status = on_hub;
            ran?;
            if is_whole {
                memory.resync = None;
            }
        }
        self.schedule(work, target, memory, rest).await
    }

    /// Reports the status, and sets when the work is looked at again: after `rest`, if it waits for
    /// a pass.
    async fn schedule(
        &self,
        work: &mut Work,
        target: &Target,
        memory: &mut Memory,
        rest: Option<Duration>,
    ) -> Result<Action, Failure> {
        if memory.resync.is_none() && !memory.is_seen(&target.sights) {
            let again = Backoff::steady(self.resync, 0.25);
            memory.resync = Some(Instant::now() + again.wait(0));
        }
        self.metrics.delivery.contested(&work.key, memory.contested());
        let told = self.tell_status(work, memory).await?;
        if rest.is_none() {
            memory.failures = 0;
            memory.said.clear();
        }
        let due = rest.or_else(|| memory.next().map(|due| due.saturating_duration_since(Instant::now())));
        Ok(next(told.into_iter().chain(due).min()))
    }

    /// The work's spec, executor and name, if it can be applied.
    fn readable(&self, work: &Work) -> Result<(Arc<ManifestWorkSpec>, Option<Executor>, String), String> {
        let spec = work.spec.as_ref().map_err(|why| format!("the spec cannot be read: {why}"))?;
        let manifests = spec.workload.manifests.len();
        if manifests > MOST_MANIFESTS {
            return Err(format!("it has {manifests} manifests, and at most {MOST_MANIFESTS} are applied: split it"));
        }
        let executor = spec.executor.as_ref().map(ManifestWorkExecutor::executor).transpose();
        let executor = executor.map_err(|why| why.to_string())?;
        if executor.is_none() && self.is_executor_required {
            return Err(removal::NO_EXECUTOR.to_owned());
        }
        let name = applied_name(&self.agent.hub_hash, work.name()).map_err(|why| why.to_string())?;
        Ok((Arc::clone(spec), executor, name))
    }

    pub(super) fn tell(&self, work: &Work, reason: Reason, note: String) {
        let object = DynamicObject::new(work.name(), &works()).within(work.cluster());
        let mut object = object.object_ref(&works());
        object.uid = Some(work.uid.clone());
        self.events.publish(object, reason, note);
    }
}

/// Looks at the work again after this time, or when it changes.
fn next(after: Option<Duration>) -> Action {
    after.map_or_else(Action::await_change, Action::requeue)
}
