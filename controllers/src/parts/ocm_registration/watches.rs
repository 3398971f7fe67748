//! Watches of clusters and requests. They fill the stores and the queues.

use std::collections::{BTreeSet, HashSet};
use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt as _;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::Event;
use kube::{Api, Client, ResourceExt as _};
use register::csr::CLUSTER_LABEL;
use register::ocm::acceptance::Cluster;
use register::ocm::condition::{self, HUB_ACCEPTED};
use register::ocm::standing::AUTOMATIC_ANNOTATION;
use register::ocm::{self, delivery};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::clusters::Clusters;
use super::hub_calls::CallError;
use super::settled::Settled;
use super::worker::Worker as _;
use super::{Shared, Sources, request_selection};
use crate::calls::{paged, watcher};
use crate::feed::follow;
use crate::raw::{self, Meta, RawObject, large};
use crate::together;

/// Wait after a removal that failed.
const AGAIN: Duration = Duration::from_secs(1);
/// Fields of `spec` that are read.
const SPEC: [&str; 3] = ["hubAcceptsClient", "leaseDurationSeconds", "taints"];

/// What the watch of clusters fills, and what it remembers of them.
pub struct SeenClusters<'a> {
    shared: &'a Shared,
    writer: Writer<DynamicObject>,
    /// Names of those that exist, by the events so far: a list does not name those that are gone.
    known: HashSet<String>,
    /// Names of those for which requests are judged again once the store has the change.
    judged_otherwise: HashSet<String>,
}

/// Runs all watches. Never ends.
pub async fn follow(shared: &Shared, sources: Sources, clusters: &Clusters, settled: &Settled, client: Client) {
    let notify = |cluster: &str| {
        if cluster.is_empty() {
            // A role that all clusters share: each accepted cluster writes it again.
            return shared.wake_all();
        }
        shared.wakes.push("", cluster);
        if !has(&shared.clusters, &shared.cluster_resource, cluster) {
            shared.leftovers.push("", cluster);
        }
    };
    together::all([
        follow_clusters(shared, sources.clusters, clusters, client.clone()).boxed(),
        follow_requests(shared, sources.requests, settled, client.clone()).boxed(),
        sources.mirror.follow(client.clone(), notify).boxed(),
        shared.sets.keep(sources.sets).boxed(),
        shared.beats.follow(client, &shared.wakes).boxed(),
    ])
    .await;
}

fn has(store: &Store<DynamicObject>, resource: &ApiResource, name: &str) -> bool {
    store.get(&ObjectRef::new_with(name, resource.clone())).is_some()
}

async fn follow_clusters(shared: &Shared, writer: Writer<DynamicObject>, clusters: &Clusters, client: Client) {
    let api: Api<RawObject> = Api::all_with(client, &shared.cluster_resource);
    let mut seen = SeenClusters::new(shared, writer);
    let apply = |event: Event<DynamicObject>| seen.take(event, clusters);
    follow::each(raw::watcher(api, paged()), "ManagedClusters to register", apply).await;
}

// === impl SeenClusters ===

impl<'a> SeenClusters<'a> {
    pub fn new(shared: &'a Shared, writer: Writer<DynamicObject>) -> Self {
        Self { shared, writer, known: HashSet::new(), judged_otherwise: HashSet::new() }
    }

    pub fn take(&mut self, event: Event<DynamicObject>, clusters: &Clusters) {
        let event = event.modify(prune);
        self.judged_otherwise.extend(tell(self.shared, &event));
        let event = event.modify(raw::pack);
        self.writer.apply_watcher_event(&event);
        match event {
            Event::Init => {}
            Event::InitApply(cluster) => {
                self.known.insert(cluster.name_any());
            }
            Event::Apply(cluster) => {
                self.shared.wakes.push("", &cluster.name_any());
                self.known.insert(cluster.name_any());
                ask_again(self.shared, &mut self.judged_otherwise);
            }
            Event::InitDone => self.list(clusters),
            Event::Delete(cluster) => self.forget(clusters, &cluster.name_any()),
        }
    }

    /// The store has a list only now that it is complete.
    fn list(&mut self, clusters: &Clusters) {
        let shared = self.shared;
        shared.wake_all();
        ask_again(shared, &mut self.judged_otherwise);
        let is_there = |name: &String| has(&shared.clusters, &shared.cluster_resource, name);
        let gone: Vec<String> = self.known.iter().filter(|name| !is_there(name)).cloned().collect();
        for name in &gone {
            self.forget(clusters, name);
        }
        for name in shared.rights.mirror.clusters().iter().filter(|name| !is_there(name)) {
            shared.leftovers.push("", name);
        }
    }

    fn forget(&mut self, clusters: &Clusters, name: &str) {
        self.known.remove(name);
        self.shared.beats.unlearn(name);
        clusters.metrics.forget(name);
        clusters.tries().forget("", name);
        self.shared.leftovers.push("", name);
    }
}

/// Tells the sets and the Leases of what an event changes in a cluster. To be called before the
/// store takes the event. Returns the cluster if requests for it are judged otherwise from then on.
fn tell(shared: &Shared, event: &Event<DynamicObject>) -> Option<String> {
    let before = before(shared, event);
    if moves(before.as_ref(), event) {
        shared.sets.look();
    }
    if let Event::Apply(cluster) | Event::InitApply(cluster) = event {
        shared.beats.learn(&cluster.name_any(), &cluster.data);
    }
    judges_otherwise(before.as_ref(), event)
}

/// The cluster of an event as it was known.
fn before(shared: &Shared, event: &Event<DynamicObject>) -> Option<DynamicObject> {
    let (Event::Apply(cluster) | Event::InitApply(cluster)) = event else { return None };
    let known = shared.clusters.get(&ObjectRef::new_with(&cluster.name_any(), shared.cluster_resource.clone()));
    known.map(|known| raw::unpacked(&known))
}

/// Whether an event may change which clusters are in which sets.
fn moves(before: Option<&DynamicObject>, event: &Event<DynamicObject>) -> bool {
    let Event::Apply(cluster) = event else { return !matches!(event, Event::Init | Event::InitApply(_)) };
    before.is_none_or(|before| before.labels() != cluster.labels())
}

/// The cluster, if requests for it are judged otherwise by that: it is new, or its acceptance
/// is another or was carried out.
fn judges_otherwise(before: Option<&DynamicObject>, event: &Event<DynamicObject>) -> Option<String> {
    let (Event::Apply(cluster) | Event::InitApply(cluster)) = event else { return None };
    before.is_none_or(|before| judgement(before) != judgement(cluster)).then(|| cluster.name_any())
}

fn judgement(cluster: &DynamicObject) -> (Option<&str>, bool, Option<&str>) {
    let carried_out = condition::status(&cluster.data, HUB_ACCEPTED);
    (cluster.metadata.uid.as_deref(), ocm::is_accepted(&cluster.data), carried_out)
}

/// Requests of these clusters that were left for a person may be approved by now.
fn ask_again(shared: &Shared, clusters: &mut HashSet<String>) {
    if clusters.is_empty() {
        return;
    }
    for request in shared.requests.state() {
        if request.data.as_str().is_some_and(|cluster| clusters.contains(cluster)) {
            shared.asked.push("", &request.name_any());
        }
    }
    clusters.clear();
}

/// Removes fields that are not read, because an agent may write a mebibyte into its own object.
fn prune(cluster: &mut DynamicObject) {
    cluster.managed_fields_mut().clear();
    cluster.metadata.owner_references = None;
    let is_read = |key: &str| key == AUTOMATIC_ANNOTATION || delivery::ANNOTATIONS.contains(&key);
    cluster.annotations_mut().retain(|key, _| is_read(key));
    if let Some(spec) = cluster.data.get_mut("spec").and_then(Value::as_object_mut) {
        spec.retain(|key, _| SPEC.contains(&key.as_str()));
    }
    if let Some(status) = cluster.data.get_mut("status").and_then(Value::as_object_mut) {
        status.retain(|key, _| key == "conditions");
    }
    // Of one that is too large, enough to carry out a no, or its end.
    large::bound(cluster, &[ocm::SET_LABEL], &["hubAcceptsClient", "leaseDurationSeconds"]);
}

/// Removes the rights of clusters that are gone although the hub's finalizer should have kept them,
/// perhaps because a person removed it. Never ends.
pub async fn clear_leftovers(shared: &Shared) {
    // Apart from the queue, so that a failing cluster is not the first one again and again.
    let mut failed = BTreeSet::<String>::new();
    let mut again = pin!(sleep(AGAIN));
    loop {
        let name = tokio::select! {
            (_, name) = shared.leftovers.next() => name,
            () = &mut again, if !failed.is_empty() => {
                for name in std::mem::take(&mut failed) {
                    shared.leftovers.push("", &name);
                }
                continue;
            }
        };
        if name.is_empty() || has(&shared.clusters, &shared.cluster_resource, &name) {
            continue;
        }
        if let Err(error) = end(shared, &name).await {
            tracing::warn!(%error, cluster = name, "cannot take away the rights of a cluster that is gone");
            if failed.is_empty() {
                again.as_mut().reset(Instant::now() + AGAIN);
            }
            failed.insert(name);
        }
    }
}

async fn end(shared: &Shared, name: &str) -> Result<(), CallError> {
    // The objects are found by the cluster's name alone.
    shared.rights.end(&Cluster { name, uid: "" }, false).await
}

async fn follow_requests(shared: &Shared, mut writer: Writer<DynamicObject>, settled: &Settled, client: Client) {
    let api: Api<Meta<CertificateSigningRequest>> = Api::all(client);
    let apply = |event| {
        let event = names(event, &shared.request_resource);
        writer.apply_watcher_event(&event);
        if matches!(event, Event::Init) {
            settled.clear();
        }
        if let Event::Apply(request) | Event::InitApply(request) = &event {
            shared.asked.push("", &request.name_any());
        }
    };
    follow::each(watcher(api, request_selection()), "certificate requests", apply).await;
}

/// Name, uid and kind are all that Events on them need; the contents are the cluster's name.
fn names(event: Event<Meta<CertificateSigningRequest>>, resource: &ApiResource) -> Event<DynamicObject> {
    let object = |request: Meta<CertificateSigningRequest>| {
        let mut object = DynamicObject::new(&request.name_any(), resource);
        object.metadata.uid = request.uid();
        object.data = request.labels().get(CLUSTER_LABEL).cloned().into();
        object
    };
    raw::mapped(event, object)
}
