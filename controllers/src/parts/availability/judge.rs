//! One cluster: its member is probed when that is due, and what follows is written.

use std::collections::HashMap;
use std::time::Duration;

use api::cluster_name::ClusterName;
use fleet::Fleet;
use kube::api::DynamicObject;
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt as _};
use net::backoff::Backoff;
use parking_lot::Mutex;
use register::ocm::availability::{self, Answers};
use register::ocm::condition::{self, Condition};
use register::ocm::taints;
use register::profile::Outcome;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::metrics::{Judged, Metrics};
use crate::parts::hub::{CallError, Hub, now, now_text, value};
use crate::parts::probe;
use crate::parts::worker::{Failure, Tries, Worker};

/// Probes at a time of members that did not answer last time: others are not to wait for them.
pub const DOUBTFUL: usize = 8;
/// By how much probes are spread: those of a fleet do not stay together. And how soon a place is
/// asked for again.
const SPREAD: Backoff = Backoff { chance: 0.1, ..Backoff::doubling(Duration::from_secs(5), Duration::from_secs(5)) };

/// What is known of the clusters that are judged.
#[derive(Debug, Default)]
pub struct Known(Mutex<HashMap<String, Seen>>);

#[derive(Debug, Clone)]
struct Seen {
    answers: Answers,
    next: Instant,
}

pub struct Judge {
    pub hub: Hub,
    pub api: Api<DynamicObject>,
    pub members: Fleet,
    pub metrics: Metrics,
    /// Another part of this program writes the taints.
    pub is_tainted_elsewhere: bool,
    pub known: Known,
    pub doubtful: Semaphore,
    pub tries: Tries,
}

// === impl Known ===

impl Known {
    fn get(&self, name: &str) -> Seen {
        let begun = || Seen { answers: Answers::begun(now()), next: Instant::now() };
        self.0.lock().entry(name.to_owned()).or_insert_with(begun).clone()
    }

    /// A probe ended so: what is known now.
    fn probed(&self, name: &str, outcome: Outcome, cluster: &Value) -> Seen {
        let answers = self.get(name).answers.after(outcome, now());
        let next = Instant::now() + SPREAD.some_of(answers.wait(cluster, now()));
        let seen = Seen { answers, next };
        // It may be gone meanwhile.
        if let Some(known) = self.0.lock().get_mut(name) {
            *known = seen.clone();
        }
        seen
    }

    pub fn forget(&self, name: &str) {
        self.0.lock().remove(name);
    }

    /// Whether too many are away for it to be they who are at fault.
    fn is_doubtful(&self) -> bool {
        let known = self.0.lock();
        availability::is_doubtful(known.values().filter(|seen| seen.answers.is_away()).count(), known.len())
    }
}

// === impl Judge ===

impl Worker for Judge {
    const KIND: &'static str = "ManagedCluster";

    fn work(&self, object: &DynamicObject) -> impl Future<Output = Result<Action, Failure>> + Send {
        self.reconcile(object)
    }

    fn tries(&self) -> &Tries {
        &self.tries
    }
}

impl Judge {
    async fn reconcile(&self, object: &DynamicObject) -> Result<Action, Failure> {
        let (name, cluster) = (object.name_any(), value(object));
        // No other name can be registered.
        let member = ClusterName::parse(&name).ok().filter(|_| availability::is_judged(&cluster));
        let Some(member) = member else {
            self.forget(&name);
            return Ok(Action::await_change());
        };
        let seen = self.look(&member, &cluster).await;
        let told = seen.answers.told(&cluster, now());
        let is_loss = told.as_ref().is_some_and(|told| told.status != "True");
        let is_held = is_loss && self.known.is_doubtful();
        let is_news = self.count(&name, &cluster, told.as_ref().filter(|_| !is_held), is_held);
        if is_held && is_news {
            tracing::warn!(
                cluster = name,
                "the member does not answer, and neither do most others: nothing is said of it, since the way to them \
                 is rather at fault; see the gateway's metrics, or set a taint by hand"
            );
        }
        if !is_held {
            let cluster = self.tell(&name, cluster, told.as_slice()).await?;
            self.taint(&name, &cluster).await?;
        }
        Ok(Action::requeue(seen.next.saturating_duration_since(Instant::now())))
    }

    /// Probes the member if that is due.
    async fn look(&self, member: &ClusterName, cluster: &Value) -> Seen {
        let name = member.as_str();
        let mut seen = self.known.get(name);
        if seen.next > Instant::now() {
            return seen;
        }
        let _place = if seen.answers.is_away() {
            let Ok(place) = self.doubtful.try_acquire() else {
                seen.next = Instant::now() + SPREAD.wait(0);
                return seen;
            };
            Some(place)
        } else {
            None
        };
        let outcome = probe::health(&self.members.client(member)).await;
        self.known.probed(name, outcome, cluster)
    }

    fn count(&self, name: &str, cluster: &Value, told: Option<&Condition>, is_held: bool) -> bool {
        let status = told.map(|told| told.status).or_else(|| condition::status(cluster, condition::AVAILABLE));
        let state = match status {
            _ if is_held => Judged::Held,
            Some("True") => Judged::Available,
            Some("False") => Judged::NotReady,
            _ => Judged::Unreachable,
        };
        self.metrics.availability.put(name, state)
    }

    async fn tell(&self, name: &str, cluster: Value, told: &[Condition]) -> Result<Value, CallError> {
        let Some(all) = condition::changed(&cluster, told, &now_text()) else { return Ok(cluster) };
        let [Condition { status, reason, message, .. }, ..] = told else { return Ok(cluster) };
        let version = &cluster["metadata"]["resourceVersion"];
        let change = json!({"metadata": {"resourceVersion": version}, "status": {"conditions": all}});
        let written = self.hub.merge_status(&self.api, name, &change).await?;
        tracing::info!(cluster = name, status, reason, message, "whether a cluster is available");
        Ok(value(&written))
    }

    async fn taint(&self, name: &str, cluster: &Value) -> Result<(), CallError> {
        if self.is_tainted_elsewhere {
            return Ok(());
        }
        let Some(taints) = taints::corrected(cluster, &now_text()) else { return Ok(()) };
        let version = &cluster["metadata"]["resourceVersion"];
        let change = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": taints}});
        self.hub.merge(&self.api, name, &change).await.map(drop)
    }

    /// Of a cluster that is gone, or that somebody else judges.
    pub fn forget(&self, name: &str) {
        self.known.forget(name);
        self.tries.forget("", name);
        self.metrics.availability.forget(name);
    }
}
