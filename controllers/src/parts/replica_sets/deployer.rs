//! Processes sets one by one: writes and removes works, then reports progress.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use delivery::work::replica_set::ReplicaSet;
use futures_util::stream::{self, StreamExt as _};
use kube::Resource as _;
use kube::api::DynamicObject;
use kube::runtime::controller::Action;
use parking_lot::RwLock;
use time::OffsetDateTime;
use tokio::time::sleep;

use super::NAME;
use super::kinds::Of;
use super::plan::{Due, Plan, Refusal, Step, Surplus, step};
use super::report::{self, Report};
use super::world::World;
use crate::events::{Events, Reason};
use crate::metrics::Metrics;
use crate::parts::hub_calls::{CallError, LeaderClient};
use crate::parts::worker::{self, Failure, Tries, Worker, judged, key};
use crate::wakes::Key;

/// Works of one set that are written concurrently.
pub const AT_ONCE: usize = 8;
/// Minimum between two writes of a set's status: a thousand works may report within a second.
const PAUSE: Duration = Duration::from_secs(1);
/// Minimum between two passes over a set: each pass reads all of its works, and each work's change
/// triggers one.
const GATHERING: Duration = Duration::from_millis(200);
/// Time after which an Event reports works that stay because decisions may be incomplete.
const PATIENCE: Duration = Duration::from_secs(10);
/// Limit of the failed works, and of the shared clusters, that an Event names.
const TOLD: usize = 3;

pub struct Deployer {
    pub hub: LeaderClient,
    pub world: Arc<RwLock<World>>,
    pub events: Events,
    pub metrics: Metrics,
    pub tries: Tries,
}

/// The result of several writes.
#[derive(Default)]
pub struct Outcome {
    /// Failed attempts: cluster and cause.
    pub failed: Vec<(String, CallError)>,
    pub tried: usize,
    /// The hub takes no writes: attempts that had not begun by then were not made.
    pub is_over: bool,
}

// === impl Worker ===

impl Worker for Deployer {
    const KIND: &'static str = "ManifestWorkReplicaSet";

    async fn work(&self, object: &DynamicObject) -> Result<Action, Failure> {
        let key = key(object);
        self.gather(&key).await;
        let done = self.settle(object, &key).await;
        let is_there = || self.world.read().set(&key).is_some();
        judged(done, &self.tries, &key, is_there, || self.metrics.failed(NAME))
    }

    fn tries(&self) -> &Tries {
        &self.tries
    }
}

// === impl Deployer ===

impl Deployer {
    /// A set is gone.
    pub fn forget(&self, key: &Key) {
        self.tries.forget(&key.0, &key.1);
        self.metrics.replica_sets.forget(key);
    }

    /// Waits for further changes of the same set within a moment: one pass covers all of them.
    async fn gather(&self, key: &Key) {
        let last = self.world.read().set(key).and_then(|known| known.worked_at);
        if let Some(end) = not_before(last, GATHERING, worker::moment()) {
            sleep(worker::until(end)).await;
        }
        if let Some(known) = self.world.write().set_mut(key) {
            known.worked_at = Some(worker::moment());
        }
    }

    async fn settle(&self, object: &DynamicObject, key: &Key) -> Result<Action, Failure> {
        self.make_sure(key).await?;
        let mut next = self.step(key);
        if let Step::Begin(finalizers) = &next {
            self.write_finalizers(key, finalizers).await?;
            next = self.step(key);
        }
        match next {
            Step::Rest | Step::Begin(_) => Ok(Action::await_change()),
            Step::End { surplus, release } => {
                self.write(object, key, &surplus, None).await.into_result()?;
                // Works that this removed at once trigger no other pass.
                let release = release.or_else(|| self.step(key).release());
                if let Some(finalizers) = release {
                    self.write_finalizers(key, &finalizers).await?;
                }
                Ok(Action::await_change())
            }
            Step::Refuse(refusal) => self.refuse(key, &refusal).await,
            Step::Deploy(set, plan) => self.deploy(object, key, (&set, plan)).await,
        }
    }

    fn step(&self, key: &Key) -> Step {
        step(&self.world.read(), key, worker::moment())
    }

    async fn refuse(&self, key: &Key, refusal: &Refusal) -> Result<Action, Failure> {
        let report = report::of_refusal(&self.world.read(), key, refusal, worker::moment());
        self.tell(key, report).await.map(worker::at)
    }

    async fn deploy(
        &self,
        object: &DynamicObject,
        key: &Key,
        (set, plan): (&ReplicaSet, Plan),
    ) -> Result<Action, Failure> {
        self.warn(object, &plan);
        self.tell_handovers(object, key, &plan);
        let held = self.held(object, key, plan.is_held);
        let outcome = self.write(object, key, &plan.surplus, Some((set, &plan.due))).await;
        let paused = if outcome.is_over {
            None
        } else {
            let report = report::of_plan(&self.world.read(), key, &plan, worker::moment());
            self.tell(key, report).await?
        };
        let again = [plan.again, held, paused].into_iter().flatten().min();
        outcome.into_result().map_err(|error| error.by(again.map(worker::until)))?;
        Ok(worker::at(again))
    }

    /// Writes the differences. A failed write does not stop others, unless the hub takes none.
    async fn write(
        &self,
        object: &DynamicObject,
        key: &Key,
        surplus: &[Surplus],
        due: Option<(&ReplicaSet, &[Due])>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        if let Some((set, due)) = due {
            // The content of a write is built when it begins.
            let writes =
                due.iter().map(|one| async move { (one.cluster.clone(), Box::pin(self.put(key, set, one)).await) });
            outcome.collect(writes.collect()).await;
        }
        if !outcome.is_over {
            let removals = surplus.iter().map(|one| async move { (one.cluster.clone(), self.remove(key, one).await) });
            outcome.collect(removals.collect()).await;
        }
        self.tell_failures(object, key, &outcome);
        outcome
    }

    /// Writes a changed status at once, or returns when it may be written: [`PAUSE`] after the last
    /// write.
    async fn tell(&self, key: &Key, report: Option<Report>) -> Result<Option<OffsetDateTime>, Failure> {
        let Some(report) = report else { return Ok(None) };
        self.metrics.replica_sets.settle(key, report.state);
        if !report.is_news {
            return Ok(None);
        }
        let now = worker::moment();
        let last = self.world.read().set(key).and_then(|known| known.told_at);
        if let Some(end) = not_before(last, PAUSE, now) {
            return Ok(Some(end));
        }
        self.write_status(key, &report).await?;
        Ok(None)
    }

    fn warn(&self, object: &DynamicObject, plan: &Plan) {
        if plan.shared.is_empty() {
            return;
        }
        let note = format!(
            "several of its Placements choose {}: each has a work there, with the same objects; let one Placement \
             choose a cluster",
            words(&plan.shared)
        );
        self.event(object, Reason::PlacementsOverlap, note);
    }

    /// Each hand-over has one Event from its beginning to its end, because rollouts reach the
    /// clusters one by one.
    fn tell_handovers(&self, object: &DynamicObject, key: &Key, plan: &Plan) {
        let all = plan.handovers.keys().cloned().collect();
        // Most sets have none, and need no write lock.
        if self.world.read().set(key).is_none_or(|known| known.told_handovers == all) {
            return;
        }
        let new = self.world.write().tell_handovers(key, all);
        for between in new {
            let clusters = plan.handovers.get(&between).map(words).unwrap_or_default();
            let (from, to) = between;
            let note = format!(
                "Placement {to} takes {clusters} over from {from}: the work of {from} on a cluster is deleted once \
                 that of {to} there is applied, so that the objects stay"
            );
            self.event(object, Reason::WorksHandedOver, note);
        }
    }

    /// The time of the next pass while works stay; an Event reports it once that lasts.
    fn held(&self, object: &DynamicObject, key: &Key, is_held: bool) -> Option<OffsetDateTime> {
        let now = worker::moment();
        let since = {
            let mut world = self.world.write();
            let known = world.set_mut(key)?;
            known.held_since = is_held.then(|| known.held_since.unwrap_or(now));
            known.held_since?
        };
        if now < since + PATIENCE {
            return Some(since + PATIENCE);
        }
        let note = "decisions name fewer clusters than their Placement counts (status.numberOfSelectedClusters), or it \
                    counts none yet: no work is removed before they agree; see why decisions are missing";
        self.event(object, Reason::RemovalHeld, note.to_owned());
        None
    }

    fn tell_failures(&self, object: &DynamicObject, key: &Key, outcome: &Outcome) {
        let failed = outcome.failed.iter().filter(|(_, error)| !error.is_conflict() && !stops_all(error));
        let texts: Vec<String> = failed.map(|(cluster, error)| format!("cluster {cluster}: {error}")).collect();
        for text in &texts {
            tracing::warn!(namespace = key.0, set = key.1, "a work was not written: {text}");
        }
        if !texts.is_empty() {
            let shown = texts[..texts.len().min(TOLD)].join("; ");
            let note = format!("{} of {} works could not be written: {shown}", texts.len(), outcome.tried);
            self.event(object, Reason::WorksFailed, note);
        }
    }

    fn event(&self, object: &DynamicObject, reason: Reason, note: String) {
        self.events.publish(object.object_ref(&Of::Set.resource()), reason, note);
    }
}

// === impl Outcome ===

impl Outcome {
    async fn collect<F>(&mut self, calls: Vec<F>)
    where
        F: Future<Output = (String, Result<(), CallError>)>,
    {
        let is_over = AtomicBool::new(false);
        // Each of the rest would wait in vain. Calls that have begun are completed: after a call is
        // dropped, it is unknown whether the hub carried it out.
        let attempts = calls.into_iter().map(|call| async {
            if is_over.load(Ordering::Relaxed) {
                return None;
            }
            let (cluster, result) = call.await;
            if result.as_ref().is_err_and(stops_all) {
                is_over.store(true, Ordering::Relaxed);
            }
            Some((cluster, result))
        });
        let mut done = stream::iter(attempts).buffer_unordered(AT_ONCE);
        while let Some(attempt) = done.next().await {
            let Some((cluster, result)) = attempt else { continue };
            self.tried += 1;
            self.failed.extend(result.err().map(|error| (cluster, error)));
        }
        drop(done);
        self.is_over |= is_over.into_inner();
    }

    /// The most significant failure: the watch may be about to resolve a conflict.
    fn into_result(self) -> Result<(), Failure> {
        let worst = self.failed.into_iter().min_by_key(|(_, error)| error.is_conflict());
        worst.map_or(Ok(()), |(_, error)| Err(Failure::Call(error)))
    }
}

/// Some of these clusters.
fn words(clusters: &BTreeSet<String>) -> String {
    let names: Vec<&str> = clusters.iter().take(TOLD).map(String::as_str).collect();
    format!("{}{}", names.join(", "), if clusters.len() > TOLD { " and others" } else { "" })
}

/// Whether a work's failure is not about its cluster: the hub is unreachable or overloaded. Any
/// other failure may come from one namespace's admission, such as a webhook that does not answer.
fn stops_all(error: &CallError) -> bool {
    match error {
        CallError::Hub(kube::Error::Api(status)) => [429, 503].contains(&status.code),
        CallError::Gone | CallError::Hub(kube::Error::BuildRequest(_) | kube::Error::SerdeError(_)) => false,
        CallError::NotLeading(_) | CallError::Timeout | CallError::Hub(_) => true,
    }
}

/// The end of `pause` since `last`, if it is in the future. If the clock was set back, there is no
/// wait.
fn not_before(last: Option<OffsetDateTime>, pause: Duration, now: OffsetDateTime) -> Option<OffsetDateTime> {
    last.map(|last| last + pause).filter(|end| *end > now && *end <= now + pause)
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    type Done = (String, Result<(), CallError>);

    #[tokio::test(start_paused = true)]
    async fn what_has_begun_ends_and_nothing_begins_once_the_hub_takes_none() {
        let mut outcome = Outcome::default();
        let call = |number: usize| async move {
            sleep(Duration::from_secs(if number == 0 { 1 } else { 2 })).await;
            if number == 0 {
                return ("c0".to_owned(), Err(CallError::Timeout));
            }
            (format!("c{number}"), Err(CallError::Gone))
        };
        outcome.collect((0..20).map(call).collect()).await;
        assert!(outcome.is_over);
        let mut clusters: Vec<&str> = outcome.failed.iter().map(|(cluster, _)| cluster.as_str()).collect();
        clusters.sort_unstable();
        assert_eq!(clusters, ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"]);
        assert!(matches!(outcome.into_result(), Err(Failure::Call(CallError::Timeout))));
    }

    #[test]
    fn what_wakes_a_set_within_a_moment_is_gathered() {
        let now = worker::moment();
        let (soon, end) = (now + GATHERING / 2, now + GATHERING);
        assert_eq!(not_before(None, GATHERING, now), None, "the first is not late");
        assert_eq!(not_before(Some(now), GATHERING, soon), Some(end));
        assert_eq!(not_before(Some(now), GATHERING, end), None);
        assert_eq!(not_before(Some(now + GATHERING * 2), GATHERING, now), None, "the clock was set back");
    }

    #[tokio::test]
    async fn what_one_namespace_answers_stops_no_other() {
        let answered = |code| {
            let status = Status { code, ..Status::default() };
            CallError::Hub(kube::Error::Api(Box::new(status)))
        };
        let mut outcome = Outcome::default();
        // A failure like that of a webhook that does not answer.
        let calls = (0..20).map(|number| async move { (format!("c{number}"), Err(answered(500))) as Done });
        outcome.collect(calls.collect()).await;
        assert_eq!((outcome.is_over, outcome.tried), (false, 20));
        assert_eq!([403, 422, 429, 500, 503].map(|code| stops_all(&answered(code))), [false, false, true, false, true]);
    }
}
