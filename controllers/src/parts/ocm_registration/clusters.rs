//! Carries out an administrator's decision about each `ManagedCluster`, and writes its conditions.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::DynamicObject;
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt as _};
use register::ocm::acceptance::Cluster;
use register::ocm::availability::{Owner, owner};
use register::ocm::condition::{self, AVAILABLE, CLOCK_SYNCED, Condition};
use register::ocm::delivery;
use register::ocm::heartbeat::grace;
use register::ocm::standing::{self, Standing};
use register::ocm::taints;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::admission::Admission;
use super::beats::Beats;
use super::corrections::{Corrections, unwritten};
use super::hub_calls::{CallError, LeaderClient, found, now_millis, now_text, value};
use super::lease::{AgentLease, Life};
use super::rights::{Refused, Rights};
use super::worker::{Failure, Tries, Worker};
use crate::events::{Events, Reason};
use crate::metrics::Joining;
use crate::parts;
use crate::raw::{self, large, meta};
use crate::wakes::Wakes;

/// Interval of checks of what a leaving cluster still has.
const STILL_THERE: Duration = Duration::from_secs(1);
/// How long an acceptance that the hub had counts as the present one: rights that a refusal finds
/// are taken at once.
const RECENT: Duration = Duration::from_secs(1);

pub struct Clusters {
    pub hub: LeaderClient,
    pub api: Api<DynamicObject>,
    pub rights: Arc<Rights>,
    pub beats: Arc<Beats>,
    pub admission: Arc<Admission>,
    pub metrics: Joining,
    pub events: Events,
    /// Whether the part `availability` judges clusters without an agent by their members' answers.
    pub answers_count: bool,
    /// Clusters, as names, whose rights are withdrawn.
    pub withdrawn: Wakes,
    pub tries: Tries,
}

// === impl Clusters ===

impl Worker for Clusters {
    const KIND: &'static str = "ManagedCluster";

    fn tries(&self) -> &Tries {
        &self.tries
    }

    async fn work(&self, object: &DynamicObject) -> Result<Action, Failure> {
        let object = &raw::unpacked(object);
        let (name, cluster) = (object.name_any(), value(object));
        let uid = object.uid().unwrap_or_default();
        let rights = Cluster { name: &name, uid: &uid };
        let standing = match standing::of(&cluster) {
            Standing::New if self.rights.were_given(&rights) => Standing::Denied,
            standing => standing,
        };
        self.metrics.count(&name, standing == Standing::Accepted, condition::status(&cluster, AVAILABLE));
        let (mut conditions, mut refused) = (Vec::new(), None);
        match standing {
            Standing::Leaving => return self.leave(&cluster, &rights).await,
            // First, so that a refusal acts at once. A cluster that is new now may have rights from
            // an acceptance that was withdrawn before the watch saw it.
            Standing::Denied | Standing::New => {
                self.rights.withdraw(&rights).await?;
                self.withdrawn.push("", &name);
            }
            Standing::Accepted => {}
        }
        if let Some(why) = large::marked(object) {
            // What was granted stays, and nothing more is granted. Silence is reported all the
            // same.
            parts::tell_too_large(&self.events, object, &why);
            if standing != Standing::Accepted || !large::is_judged(object) {
                return Ok(Action::await_change());
            }
            let full = self.judge_large(&name, &cluster).await?;
            return self.report(object, standing, full);
        }
        let corrections = Corrections { hub: &self.hub, api: &self.api, name: &name };
        let asked = Instant::now();
        let (mut cluster, mut uncorrected) = corrections.write(cluster, standing).await?;
        match standing {
            Standing::Denied => conditions.push(Condition::denied()),
            Standing::Accepted => match self.accept(&rights, seen(object, &cluster, asked)).await {
                Ok(()) => {
                    let (chosen, full) = self.choose_delivery(&name, cluster).await?;
                    cluster = chosen;
                    conditions.extend(full.is_none().then(Condition::accepted));
                    uncorrected = uncorrected.or(full);
                }
                Err(why) => {
                    conditions.push(Condition::failed(why.for_condition()));
                    refused = Some(why);
                }
            },
            Standing::New | Standing::Leaving => {}
        }
        let was_judged = !conditions.is_empty() && refused.is_none();
        if was_judged {
            self.heartbeat(&name, &cluster, standing, &mut conditions).await?;
        }
        let why = refused.map(|why| why.to_string()).or(uncorrected);
        // An object that is full takes no condition either: the Event says why.
        let full = self.put_conditions(&name, &cluster, &conditions).await?;
        self.report(object, standing, why.or(full))
    }
}

impl Clusters {
    /// Says what could not be done, if anything: it is tried again.
    fn report(&self, object: &DynamicObject, standing: Standing, undone: Option<String>) -> Result<Action, Failure> {
        let Some(note) = undone else { return Ok(Action::await_change()) };
        let is_accepted = standing == Standing::Accepted;
        self.events.publish_of(is_accepted, reference(object), Reason::AcceptanceFailed, note.clone());
        Err(Failure::Reported(note))
    }

    /// Carries out an acceptance that the hub had after `seen`. Costs no call if everything exists.
    async fn accept(&self, cluster: &Cluster<'_>, seen: Option<Instant>) -> Result<(), Refused> {
        let missing = self.rights.missing(cluster)?;
        if missing.is_empty() {
            return Ok(());
        }
        if let Some(objection) = self.admission.objection(cluster.name).await {
            return Err(Refused::Admission(objection));
        }
        // The watched object may be old, and after a refusal no rights may be given.
        if seen.is_none_or(|seen| seen.elapsed() >= RECENT) && !self.is_still_accepted(cluster).await? {
            return Ok(());
        }
        self.rights.grant(&missing).await
    }

    async fn is_still_accepted(&self, cluster: &Cluster<'_>) -> Result<bool, Refused> {
        let key = cluster.namespace_key();
        let fresh = self.hub.read(meta::get_object(&self.api, cluster.name)).await;
        let fresh = fresh.map_err(|error| Refused::Write { key, error })?;
        Ok(standing::of(&value(&fresh)) == Standing::Accepted && fresh.uid().as_deref() == Some(cluster.uid))
    }

    /// Reports the silence of an accepted cluster that is too large, and sets the taints that its
    /// conditions ask for: first the conditions, whose event leads back here. Also returns why an
    /// object that is full does not take them.
    async fn judge_large(&self, name: &str, cluster: &Value) -> Result<Option<String>, CallError> {
        let mut conditions = Vec::new();
        self.heartbeat(name, cluster, Standing::Accepted, &mut conditions).await?;
        if condition::changed(cluster, &conditions, &now_text()).is_some() {
            return self.put_conditions(name, cluster, &conditions).await;
        }
        let taints = taints::corrected(cluster, &now_text()).filter(|_| large::has_taints(cluster));
        let Some(taints) = taints else { return Ok(None) };
        let version = &cluster["metadata"]["resourceVersion"];
        let change = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": taints}});
        Ok(unless_full(self.hub.merge(&self.api, name, &change).await, "taints")?.err())
    }

    /// Chooses how the cluster is delivered to, at its first acceptance. Runs before the condition
    /// that reports the acceptance is written: only at the first one is it missing. Also returns
    /// why an object that is full does not take it.
    async fn choose_delivery(&self, name: &str, cluster: Value) -> Result<(Value, Option<String>), CallError> {
        let Some(annotations) = delivery::chosen(&cluster, &now_text()) else { return Ok((cluster, None)) };
        let version = &cluster["metadata"]["resourceVersion"];
        let change = json!({"metadata": {"resourceVersion": version, "annotations": annotations}});
        Ok(match unless_full(self.hub.merge(&self.api, name, &change).await, "annotations")? {
            Ok(changed) => (value(&changed), None),
            Err(full) => (cluster, Some(full)),
        })
    }

    /// Maintains the Lease, and reports a silent agent or a wrong clock.
    async fn heartbeat(
        &self,
        name: &str,
        cluster: &Value,
        standing: Standing,
        conditions: &mut Vec<Condition>,
    ) -> Result<(), CallError> {
        let (grace, is_accepted) = (grace(cluster), standing == Standing::Accepted);
        let lease = AgentLease { hub: &self.hub, beats: &self.beats, name, cluster };
        let Some(mut beat) = self.beats.of(name, grace) else {
            return if is_accepted { lease.create().await } else { Ok(()) };
        };
        let is_unknown = condition::status(cluster, AVAILABLE) == Some("Unknown");
        let is_answered = self.answers_count && owner(cluster, false) == Owner::Answers;
        let is_silent = beat.silent_from(grace) <= now_millis();
        if is_silent && !is_unknown && !is_answered {
            match lease.confirm(grace).await? {
                Life::Silent => conditions.push(Condition::silent()),
                Life::Gone if is_accepted => return lease.create().await,
                Life::Gone | Life::Renewed => {}
            }
            // The watch sees that renewal later. It is known by then, so no other look follows.
            beat = self.beats.of(name, grace).unwrap_or(beat);
        }
        let told = condition::status(cluster, CLOCK_SYNCED);
        if let Some(is_synced) = beat.is_synced
            && told != Some(if is_synced { "True" } else { "False" })
        {
            conditions.push(Condition::clock(is_synced));
        }
        Ok(())
    }

    /// Also returns why an object that is full does not take them.
    async fn put_conditions(
        &self,
        name: &str,
        cluster: &Value,
        conditions: &[Condition],
    ) -> Result<Option<String>, CallError> {
        let Some(all) = condition::changed(cluster, conditions, &now_text()) else { return Ok(None) };
        let version = &cluster["metadata"]["resourceVersion"];
        let change = json!({"metadata": {"resourceVersion": version}, "status": {"conditions": all}});
        Ok(unless_full(self.hub.merge_status(&self.api, name, &change).await, "conditions")?.err())
    }

    /// Deletes works and add-ons first, then the rights, and removes our finalizer last.
    async fn leave(&self, cluster: &Value, rights: &Cluster<'_>) -> Result<Action, Failure> {
        self.rights.end(rights, true).await?;
        if self.rights.delete_dependents(rights).await? {
            return Ok(Action::requeue(STILL_THERE));
        }
        self.rights.end(rights, false).await?;
        let finalizers = cluster["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        let rest = register::ocm::leaving::others(&finalizers);
        if rest.len() < finalizers.len() {
            let version = &cluster["metadata"]["resourceVersion"];
            let change = json!({"metadata": {"resourceVersion": version, "finalizers": rest}});
            found(self.hub.merge(&self.api, rights.name, &change).await)?;
        }
        Ok(Action::await_change())
    }
}

/// When the hub had the object as it was judged, if that is known: a write that was `asked` for
/// then has its version, and was answered with another.
fn seen(object: &DynamicObject, written: &Value, asked: Instant) -> Option<Instant> {
    let version = written["metadata"]["resourceVersion"].as_str();
    (version.is_some() && version != object.metadata.resource_version.as_deref()).then_some(asked)
}

/// What was written; or why `what` was not, if the hub takes no larger object.
fn unless_full<T>(written: Result<T, CallError>, what: &str) -> Result<Result<T, String>, CallError> {
    match written {
        Ok(written) => Ok(Ok(written)),
        Err(error) if error.is_too_large() => Ok(Err(unwritten(what, &error))),
        Err(error) => Err(error),
    }
}

/// The object's reference, for Events.
pub fn reference(object: &DynamicObject) -> ObjectReference {
    let types = object.types.as_ref();
    ObjectReference {
        api_version: types.map(|types| types.api_version.clone()),
        kind: types.map(|types| types.kind.clone()),
        name: Some(object.name_any()),
        uid: object.uid(),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;
    use register::ocm::heartbeat::LEASE;
    use tokio::sync::mpsc;

    use super::super::mirror::Mirror;
    use super::super::unseen::Unseen;
    use super::*;
    use crate::parts::hub_calls::managed_clusters;
    use crate::scripted;
    use crate::term::Term;

    /// A hub that takes no status, because objects are full. Sends the notes of Events to `notes`.
    fn full_hub(notes: mpsc::Sender<String>) -> LeaderClient {
        LeaderClient::scripted(move |head, mut body| {
            let path = head.uri.path();
            if path.ends_with("/status") {
                return Some(scripted::status(500, "", "etcdserver: request is too large"));
            }
            if path.ends_with("/events") {
                notes.try_send(body["note"].as_str().unwrap_or_default().to_owned()).expect("room for it");
            } else {
                body["metadata"]["name"] = "c1".into();
            }
            Some((200, body))
        })
    }

    fn clusters_on(hub: LeaderClient) -> Clusters {
        let api: Api<DynamicObject> = Api::all_with(hub.client.clone(), &managed_clusters());
        let (mirror, _writers) = Mirror::new(hub.client.clone());
        Clusters {
            rights: Arc::new(Rights {
                hub: hub.clone(),
                mirror,
                unseen: Unseen::default(),
                own_namespace: "own".to_owned(),
                filled: None,
            }),
            beats: Arc::default(),
            admission: Arc::new(Admission::new(hub.clone(), api.clone())),
            metrics: Joining::default(),
            events: Events::start(hub.client.clone(), Counter::default(), Term::endless()),
            answers_count: false,
            withdrawn: Wakes::default(),
            tries: Tries::default(),
            hub,
            api,
        }
    }

    /// Its clock is an hour behind, and the watch has not reported its last renewal yet.
    #[tokio::test]
    async fn a_wrong_clock_that_shows_when_the_lease_is_read_is_told() {
        let written = now_millis() - 3_600_000;
        let renewed = k8s_openapi::jiff::Timestamp::from_millisecond(written).unwrap().to_string();
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": LEASE, "namespace": "c1"}, "spec": {"renewTime": renewed}});
        let clusters = clusters_on(LeaderClient::scripted(move |_, _| Some((200, lease.clone()))));
        let (cluster, mut conditions) = (json!({"spec": {"hubAcceptsClient": true}}), Vec::new());
        clusters.beats.see("c1", written - 60_000, Some(&cluster));
        clusters.heartbeat("c1", &cluster, Standing::Accepted, &mut conditions).await.unwrap();
        assert_eq!(conditions, [Condition::clock(false)], "and it is not silent");
        assert!(!clusters.beats.see("c1", written, Some(&cluster)), "the watch has nothing new to tell");
    }

    #[tokio::test]
    async fn a_cluster_whose_status_alone_is_refused_gets_an_event() {
        let (notes, mut told) = mpsc::channel(8);
        let clusters = clusters_on(full_hub(notes));
        let mut denied = DynamicObject::new("c1", &managed_clusters()).data(json!({"spec": {}}));
        denied.annotations_mut().insert(standing::AUTOMATIC_ANNOTATION.to_owned(), "2026-01-01T00:00:00Z".to_owned());
        let failure = clusters.work(&denied).await.unwrap_err();
        let (note, remedy) = ("cannot write its conditions", "; make it smaller");
        assert!(matches!(&failure, Failure::Reported(why) if why.starts_with(note)), "{failure}");
        assert_eq!(clusters.withdrawn.waiting(), 1, "its rights are gone all the same");
        let told = told.recv().await.unwrap();
        assert!(told.starts_with(note) && told.ends_with(remedy), "{told}");
    }
}
