//! Judges one cluster: probes its member when that is due, and writes the result.

use std::collections::HashMap;
use std::time::Duration;

use api::cluster_name::ClusterName;
use fleet::Fleet;
use kube::api::DynamicObject;
use kube::runtime::controller::Action;
use kube::{Api, Resource as _, ResourceExt as _};
use net::backoff::Backoff;
use parking_lot::Mutex;
use register::ocm::availability::{Answering, Answers, Owner, is_by_answers, owner};
use register::ocm::condition::{self, Condition};
use register::ocm::taints;
use register::outcome::Outcome;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::agents::Agents;
use crate::events::{Events, Reason};
use crate::metrics::{Judged, Metrics};
use crate::parts;
use crate::parts::hub_calls::{self, CallError, LeaderClient, now_text, value};
use crate::parts::probe;
use crate::parts::worker::{Failure, Tries, Worker};
use crate::raw::large;
use crate::wakes::Wakes;

/// Concurrent probes of members that are slow or away, so that they do not delay others.
pub const DOUBTFUL: usize = 8;
/// A probe that takes longer is slow. The probe of a member that is not known to be slow is given
/// up after this time.
const SLOW: Duration = Duration::from_secs(1);
/// Share by which probes are spread, so that those of a fleet do not stay together.
const SPREAD: f64 = 0.1;
/// Wait before the next try to get a permit.
const NO_ROOM: Backoff = Backoff::steady(Duration::from_secs(2), SPREAD);

/// Time between two reports of held losses while the path to members is in doubt. Each was held for
/// long. If the fault is on this side all the same, an operator has time to notice.
const BETWEEN_HELD: Duration = Duration::from_mins(5);

/// State of the judged clusters.
#[derive(Debug, Default)]
pub struct ProbeStates {
    by_cluster: Mutex<HashMap<String, ProbeState>>,
    /// Time of the last report of a held loss.
    released: Mutex<Option<Instant>>,
}

#[derive(Debug, Clone)]
struct ProbeState {
    answers: Answers,
    /// Time at which its last probe ended.
    asked: Option<Instant>,
    /// Share of the time until the next probe that is waited for.
    share: f64,
    /// Time of the next probe, for the period that the cluster has now.
    next: Instant,
    /// Whether the last probe was slow.
    is_slow: bool,
    /// Whether the result of the last probe could not be written.
    is_unwritten: bool,
}

pub struct Judge {
    pub hub: LeaderClient,
    pub api: Api<DynamicObject>,
    pub members: Fleet,
    pub metrics: Metrics,
    pub events: Events,
    /// The part `ocm-registration` runs too: it follows Leases, says which agents are silent, and
    /// sets the taints of all clusters by their conditions.
    pub is_beside_registration: bool,
    pub agents: Agents,
    pub states: ProbeStates,
    pub doubtful: Semaphore,
    pub tries: Tries,
    /// Woken when a member answers again.
    pub answered: Wakes,
}

// === impl ProbeStates ===

impl ProbeStates {
    /// State of `cluster`, with its current period.
    fn get(&self, name: &str, cluster: &Value) -> ProbeState {
        let mut states = self.by_cluster.lock();
        let state = states.entry(name.to_owned()).or_insert_with(|| ProbeState::begun(cluster));
        state.of(cluster);
        state.clone()
    }

    /// Records the outcome of a probe that lasted `took`. Returns the new state.
    fn probed(&self, name: &str, state: ProbeState, outcome: Outcome, took: Duration, cluster: &Value) -> ProbeState {
        let (at, mut states) = (Instant::now(), self.by_cluster.lock());
        let now = at.into_std();
        let others = || states.iter().filter(|(other, _)| *other != name).map(|(_, state)| &state.answers);
        let others_answer = others().any(|other| other.answers_beside(&state.answers, now));
        let answers = state.answers.after(outcome, now, others_answer);
        // Doubt about the path does not matter for a member that answers.
        let answers = if answers.is_away() {
            let own = answers.clone();
            let fleet = Answering::of(&own, others(), now);
            answers.weighed(fleet, cluster, now, || !others().any(|one| one.waits_before(&own)) && self.releases())
        } else {
            answers
        };
        let share = NO_ROOM.some_of(Duration::from_secs(1)).as_secs_f64();
        let mut state =
            ProbeState { answers, asked: Some(at), share, next: at, is_slow: took > SLOW, is_unwritten: false };
        state.of(cluster);
        // The cluster may be gone by now.
        if let Some(own) = states.get_mut(name) {
            *own = state.clone();
        }
        state
    }

    /// Whether a loss that was held for long may be reported now.
    fn releases(&self) -> bool {
        let (now, mut released) = (Instant::now(), self.released.lock());
        let is_time = released.is_none_or(|last| now >= last + BETWEEN_HELD);
        if is_time {
            *released = Some(now);
        }
        is_time
    }

    /// Marks a member whose probe was given up, so that the next one is among the slow.
    fn slow(&self, name: &str) {
        if let Some(own) = self.by_cluster.lock().get_mut(name) {
            own.is_slow = true;
        }
    }

    /// Records whether the result of the last probe could not be written, and must be tried again.
    fn set_unwritten(&self, name: &str, is_unwritten: bool) {
        if let Some(own) = self.by_cluster.lock().get_mut(name) {
            own.is_unwritten = is_unwritten;
        }
    }

    /// Whether a slow or absent member whose probe is due since `due` is among the longest waiting
    /// ones, as many as there are permits.
    fn is_next(&self, due: Instant) -> bool {
        let before = |state: &&ProbeState| state.next < due && state.is_doubtful();
        self.by_cluster.lock().values().filter(before).count() < DOUBTFUL
    }

    pub fn forget(&self, name: &str) {
        self.by_cluster.lock().remove(name);
    }
}

// === impl ProbeState ===

impl ProbeState {
    fn begun(cluster: &Value) -> Self {
        let (answers, next) = (Answers::begun(cluster), Instant::now());
        Self { answers, asked: None, share: 1.0, next, is_slow: false, is_unwritten: false }
    }

    /// Applies the current period of `cluster`.
    fn of(&mut self, cluster: &Value) {
        self.answers.of(cluster);
        if let Some(asked) = self.asked {
            self.next = asked + self.answers.wait(cluster, asked.into_std()).mul_f64(self.share);
        }
    }

    fn left(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Whether its next probe may take long.
    fn is_doubtful(&self) -> bool {
        self.is_slow || self.answers.is_doubtful()
    }
}

// === impl Judge ===

impl Worker for Judge {
    const KIND: &'static str = "ManagedCluster";

    fn tries(&self) -> &Tries {
        &self.tries
    }

    async fn work(&self, object: &DynamicObject) -> Result<Action, Failure> {
        let (name, cluster) = (object.name_any(), value(object));
        if !large::is_judged(object) {
            // Its last answers must not hold up the loss of others.
            self.states.forget(&name);
            return Ok(Action::await_change());
        }
        // No other name can be registered.
        let Ok(member) = ClusterName::parse(&name) else { return Ok(Action::await_change()) };
        if let Some(action) = self.others_word(&name, &cluster).await? {
            return Ok(action);
        }
        let (state, is_new) = self.look(&member, &cluster).await;
        let told = state.answers.condition(&cluster, Instant::now().into_std(), is_new);
        let is_held = state.answers.is_held() && told.is_none();
        let is_news = self.count(&name, &cluster, told.as_ref(), is_held);
        if is_held && is_news {
            tracing::warn!(
                cluster = name,
                "the member does not answer, and neither do most others: no loss is reported, because the path to \
                 them is probably at fault; see the gateway's metrics, or move its workloads with a taint that has \
                 a key of your own"
            );
        }
        if !is_held {
            let written = self.write(&name, cluster, told.as_slice()).await;
            self.states.set_unwritten(&name, written.is_err());
            if let Err(error) = &written
                && error.is_too_large()
            {
                let note = format!("cannot write whether it is available: {error}; make it smaller");
                let reference = object.object_ref(&hub_calls::managed_clusters());
                self.events.publish_of(true, reference, Reason::ClusterTooLarge, note);
            }
            // The next probe must not wait for writes that fail.
            written.map_err(|error| Failure::from(error).by(Some(state.left().max(SLOW))))?;
        }
        Ok(Action::requeue(state.left()))
    }
}

impl Judge {
    /// The action where an agent's report decides; None: the member's answers decide.
    async fn others_word(&self, name: &str, cluster: &Value) -> Result<Option<Action>, CallError> {
        if owner(cluster, false) == Owner::Answers {
            self.agents.forget(name);
            return Ok(None);
        }
        if self.is_beside_registration || owner(cluster, true) == Owner::Agent {
            self.forget(name);
            return Ok(Some(Action::await_change()));
        }
        let left = self.agents.left(&self.hub, name, cluster).await?;
        if left.is_zero() {
            return Ok(None);
        }
        self.forget_answers(name);
        Ok(Some(Action::requeue(left)))
    }

    /// Probes the member if that is due. Returns also whether its answer is new, or not reported
    /// yet.
    async fn look(&self, member: &ClusterName, cluster: &Value) -> (ProbeState, bool) {
        let name = member.as_str();
        let mut state = self.states.get(name, cluster);
        let is_unwritten = state.is_unwritten;
        if !state.left().is_zero() {
            return (state, is_unwritten);
        }
        let began = Instant::now();
        let probe = probe::health(&self.members, member);
        let outcome = if state.is_doubtful() {
            // Does not wait for a permit: a waiter would hold a slot of the queue that members that
            // answer need.
            let place = self.states.is_next(state.next).then(|| self.doubtful.try_acquire().ok()).flatten();
            let Some(_place) = place else {
                state.next = Instant::now() + NO_ROOM.wait(0);
                return (state, is_unwritten);
            };
            probe.await
        } else {
            let Ok(outcome) = timeout(SLOW, probe).await else {
                self.states.slow(name);
                return (state, is_unwritten);
            };
            outcome
        };
        if matches!(outcome, Outcome::Healthy) && state.is_doubtful() {
            self.answered.push("", name);
        }
        (self.states.probed(name, state, outcome, began.elapsed(), cluster), true)
    }

    async fn write(&self, name: &str, cluster: Value, told: &[Condition]) -> Result<(), CallError> {
        let cluster = self.tell(name, cluster, told).await?;
        self.taint(name, &cluster).await
    }

    fn count(&self, name: &str, cluster: &Value, told: Option<&Condition>, is_held: bool) -> bool {
        let status = told.map(|told| told.status).or_else(|| condition::status(cluster, condition::AVAILABLE));
        let state = match status {
            _ if is_held => Judged::Held,
            None => Judged::Unknown,
            Some("True") => Judged::Available,
            Some("False") => Judged::NotReady,
            Some(_) => Judged::Unreachable,
        };
        self.metrics.availability.put(name, state)
    }

    async fn tell(&self, name: &str, cluster: Value, told: &[Condition]) -> Result<Value, CallError> {
        let Some(all) = condition::changed(&cluster, told, &now_text()) else { return Ok(cluster) };
        let [Condition { status, reason, message, .. }, ..] = told else { return Ok(cluster) };
        let version = &cluster["metadata"]["resourceVersion"];
        let change = json!({"metadata": {"resourceVersion": version}, "status": {"conditions": all}});
        let written = self.hub.merge_status(&self.api, name, &change).await?;
        tracing::info!(cluster = name, status, reason, message, "availability of a cluster");
        Ok(value(&written))
    }

    async fn taint(&self, name: &str, cluster: &Value) -> Result<(), CallError> {
        // A missing condition, or one that an agent wrote, is not ours.
        if self.is_beside_registration || !is_by_answers(cluster) || !large::has_taints(cluster) {
            return Ok(());
        }
        let Some(taints) = taints::corrected(cluster, &now_text()) else { return Ok(()) };
        let version = &cluster["metadata"]["resourceVersion"];
        let change = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": taints}});
        self.hub.merge(&self.api, name, &change).await.map(drop)
    }

    /// Once for each change: a cluster that is too large is judged again and again.
    pub fn tell_too_large(&self, cluster: &DynamicObject) {
        if let Some(why) = large::marked(cluster) {
            parts::tell_too_large(&self.events, cluster, &why);
        }
    }

    /// Forgets a cluster that is gone, or that is not for this part to judge, even if its agent is
    /// silent.
    pub fn forget(&self, name: &str) {
        self.agents.forget(name);
        self.forget_answers(name);
    }

    fn forget_answers(&self, name: &str) {
        self.states.forget(name);
        self.tries.forget("", name);
        self.metrics.availability.forget(name);
    }
}

#[cfg(test)]
mod tests;
