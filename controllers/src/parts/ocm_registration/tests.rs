//! What one join asks of the hub: each request costs it reviews, and hundreds may join at once.

use std::collections::BTreeMap;

use api::patch::Patch;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use kube::runtime::watcher::Event;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use register::csr::CLUSTER_LABEL;
use register::ocm::SET_LABEL;
use register::ocm::acceptance::{Cluster, common_roles};
use register::ocm::standing::AUTOMATIC_ANNOTATION;
use serde_json::{Value, json};

use super::admission::refused_probe;
use super::hub_calls::{managed_clusters, resource};
use super::watches::SeenClusters;
use super::worker::Worker as _;
use super::*;
use crate::args::parse_from;
use crate::events::Events;
use crate::metrics::Joining;
use crate::raw::unpacked;
use crate::scripted;
use crate::term::Term;

const USER: &str = "system:serviceaccount:agents:agent";
const OWN: &str = "own";
const CLUSTER: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters/c1";
const REQUEST: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests/r1";
/// Dry runs of the three policies.
const PROBE: &str = "probe";

/// A hub with a cluster that asks to join.
#[derive(Default)]
struct Stored {
    /// By their paths.
    objects: BTreeMap<String, Value>,
    asked: Vec<String>,
    version: u64,
    /// What another client changes of the cluster once, after it was read or probed.
    other: Option<Value>,
    /// Whether the cluster is gone once a write to it was refused.
    ends: bool,
}

struct Fixture {
    stored: Arc<Mutex<Stored>>,
    requests: Requests,
    clusters: Clusters,
    mirror: Writers,
}

// === impl Stored ===

impl Stored {
    fn put(&mut self, path: &str, mut object: Value) -> (u16, Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.objects.insert(path.to_owned(), object.clone());
        (200, object)
    }

    fn patch(&mut self, path: &str, change: Value) -> (u16, Value) {
        let Some(before) = self.objects.get(path).cloned() else {
            return scripted::status(404, "NotFound", "there is none");
        };
        let version = &change["metadata"]["resourceVersion"];
        if !version.is_null() && *version != before["metadata"]["resourceVersion"] {
            if self.ends {
                self.objects.remove(path);
            }
            return scripted::status(409, "Conflict", "it was changed");
        }
        let after = Patch::Merge(change).patched(before).unwrap();
        self.put(path, after)
    }

    fn answer(&mut self, method: &Method, path: &str, body: Value) -> (u16, Value) {
        let path = path.trim_end_matches("/status").trim_end_matches("/approval");
        match *method {
            Method::POST => {
                let path = format!("{path}/{}", body["metadata"]["name"].as_str().unwrap_or_default());
                self.put(&path, body)
            }
            Method::PATCH => self.patch(path, body),
            Method::PUT => self.put(path, body),
            _ => self.read(path),
        }
    }

    fn read(&mut self, path: &str) -> (u16, Value) {
        let none = || scripted::status(404, "NotFound", "there is none");
        let found = self.objects.get(path).cloned().map_or_else(none, |object| (200, object));
        self.change(path);
        found
    }

    fn change(&mut self, path: &str) {
        if path == CLUSTER
            && let Some(change) = self.other.take()
        {
            self.patch(path, change);
        }
    }
}

/// A request without the group of its kind.
fn short(method: &Method, path: &str) -> String {
    format!("{method} {}", path.split_once("/v1/").map_or(path, |(_, rest)| rest))
}

/// Writes to clusters.
fn patches(asked: &[String]) -> usize {
    asked.iter().filter(|request| request.starts_with("PATCH managedclusters")).count()
}

/// What an agent of `c1` asks for.
fn request() -> Value {
    let own = "system:open-cluster-management:c1";
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, own);
    params.distinguished_name.push(DnType::CommonName, format!("{own}:agent"));
    let key = KeyPair::generate().unwrap();
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": "r1", "uid": "u-r1", "labels": {CLUSTER_LABEL: "c1"}},
        "spec": {"signerName": SIGNER, "username": USER, "request": STANDARD.encode(pem),
            "usages": ["digital signature", "key encipherment", "client auth"]}})
}

// === impl Fixture ===

impl Fixture {
    fn new() -> Self {
        Self::reached(|hub| hub)
    }

    /// Its hub is reached in this way.
    fn reached(by: impl FnOnce(LeaderClient) -> LeaderClient) -> Self {
        let stored = Arc::<Mutex<Stored>>::default();
        stored.lock().put(REQUEST, request());
        let cluster = json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": "c1", "uid": "u-c1"}, "spec": {"hubAcceptsClient": false}});
        stored.lock().put(CLUSTER, cluster);
        let answering = Arc::clone(&stored);
        let hub = LeaderClient::scripted(move |head, body| {
            let (mut stored, path) = (answering.lock(), head.uri.path());
            if let Some(refused) = refused_probe(head, &body) {
                stored.asked.push(PROBE.to_owned());
                stored.change(CLUSTER);
                return Some(refused);
            }
            stored.asked.push(short(&head.method, path));
            Some(stored.answer(&head.method, path, body))
        });
        Self::on(by(hub), stored)
    }

    fn on(hub: LeaderClient, stored: Arc<Mutex<Stored>>) -> Self {
        let api: Api<DynamicObject> = Api::all_with(hub.client.clone(), &managed_clusters());
        let (mirror, writers) = Mirror::new(hub.client.clone());
        let rights =
            Rights { hub: hub.clone(), mirror, unseen: Unseen::default(), own_namespace: OWN.to_owned(), filled: None };
        let (rights, admission) = (Arc::new(rights), Arc::new(Admission::new(hub.clone(), api.clone())));
        let events = Events::start(hub.client.clone(), Counter::default(), Term::endless());
        let requests = Requests {
            hub: hub.clone(),
            all: Api::all_with(hub.client.clone(), &request_resource()),
            api: Api::all(hub.client.clone()),
            clusters: api.clone(),
            rights: Arc::clone(&rights),
            secrets: Api::namespaced(hub.client.clone(), OWN),
            admission: Arc::clone(&admission),
            trusted: vec![USER.to_owned()],
            events: events.clone(),
            metrics: Joining::default(),
            approvals: Mutex::default(),
            started: Instant::now(),
            settled: Settled::default(),
            tries: worker::Tries::default(),
        };
        let clusters = Clusters {
            hub,
            api,
            rights,
            beats: Arc::default(),
            admission,
            metrics: Joining::default(),
            events,
            answers_count: false,
            withdrawn: Wakes::default(),
            tries: worker::Tries::default(),
        };
        Self { stored, requests, clusters, mirror: writers }
    }

    /// What the hub was asked since the last time.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.stored.lock().asked)
    }

    fn object(&self, path: &str) -> Value {
        self.stored.lock().objects[path].clone()
    }

    async fn judge(&self) {
        self.judged("u-r1").await.unwrap();
    }

    /// As the watch of requests has it.
    async fn judged(&self, uid: &str) -> Result<(), worker::Failure> {
        let mut known = DynamicObject::new("r1", &request_resource());
        known.metadata.uid = Some(uid.to_owned());
        self.requests.work(&known).await.map(drop)
    }

    async fn look(&self) {
        self.looked(self.object(CLUSTER)).await.unwrap();
    }

    /// At a cluster as the watch of clusters has it.
    async fn looked(&self, cluster: Value) -> Result<(), worker::Failure> {
        let cluster: DynamicObject = serde_json::from_value(cluster).unwrap();
        self.clusters.work(&cluster).await.map(drop)
    }

    /// Looks at a cluster that was refused after it was `watched`.
    async fn look_too_late(&self, watched: Value) {
        let looked = self.looked(watched).await;
        assert!(looked.is_err_and(|failure| failure.is_conflict()), "its conditions are of another version");
        let asked = self.asked();
        let reads: Vec<_> = asked.iter().filter(|request| request.starts_with("GET")).collect();
        assert_eq!(reads, ["GET managedclusters/c1"], "{asked:?}");
        let has_rights = asked.iter().any(|request| request.starts_with("POST") && !request.ends_with("/leases"));
        assert!(!has_rights, "{asked:?}");
    }

    /// The watches tell of all rights.
    fn see_rights(&self) {
        let own = Cluster { name: "c1", uid: "u-c1" }.granted(false);
        for wanted in common_roles(None).into_iter().chain(own) {
            let path = format!("{}/{}", self.clusters.rights.mirror.api(&wanted.key).resource_url(), wanted.key.name);
            let object: DynamicObject = serde_json::from_value(self.object(&path)).unwrap();
            self.mirror.saw(wanted.key.kind, &object);
        }
    }
}

fn request_resource() -> ApiResource {
    resource("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests")
}

/// An agent that asks for its first certificate, until it may use it. Paused, as others here: what
/// was found out a moment ago would be old on a busy machine.
#[tokio::test(start_paused = true)]
async fn a_join_asks_for_nothing_twice() {
    let fixture = Fixture::new();
    fixture.judge().await;
    let approval = [
        "GET certificatesigningrequests/r1",
        "GET managedclusters/c1",
        "GET namespaces/own/secrets/c1",
        PROBE,
        PROBE,
        PROBE,
        "PATCH managedclusters/c1",
        "PUT certificatesigningrequests/r1/approval",
    ];
    assert_eq!(fixture.asked(), approval);
    assert_eq!(fixture.object(REQUEST)["status"]["conditions"][0]["type"], "Approved");

    fixture.look().await;
    let acceptance = [
        "GET managedclusters/c1",
        "POST clusterroles",
        "POST clusterroles",
        "POST namespaces",
        "POST clusterroles",
        "POST clusterroles",
        "POST clusterrolebindings",
        "POST namespaces/c1/rolebindings",
        "POST namespaces/c1/rolebindings",
        "POST clusterrolebindings",
        "POST namespaces/c1/leases",
        "PATCH managedclusters/c1/status",
    ];
    assert_eq!(fixture.asked(), acceptance, "the first two are for all clusters");
    let cluster = fixture.object(CLUSTER);
    assert_eq!(cluster["metadata"]["labels"][SET_LABEL], "default");
    assert_eq!(cluster["status"]["conditions"][0]["status"], "True");

    // The watches tell of each of these writes, and of the certificate, which the hub signs.
    fixture.see_rights();
    fixture.look().await;
    fixture.judge().await;
    assert_eq!(fixture.asked(), [""; 0]);
}

/// It was deleted and made again.
#[tokio::test]
async fn a_request_of_the_name_of_a_decided_one_is_judged() {
    let fixture = Fixture::new();
    fixture.judge().await;
    let mut other = request();
    other["metadata"]["uid"] = "u-r2".into();
    fixture.stored.lock().put(REQUEST, other);
    fixture.asked();
    fixture.judged("u-r2").await.unwrap();
    assert_eq!(fixture.asked()[0], "GET certificatesigningrequests/r1");
    assert_eq!(fixture.object(REQUEST)["status"]["conditions"][0]["type"], "Approved");
}

/// A cluster that an administrator accepted before anything was written to it.
#[tokio::test(start_paused = true)]
async fn an_acceptance_that_was_just_written_to_is_not_read() {
    let fixture = Fixture::new();
    fixture.stored.lock().patch(CLUSTER, json!({"spec": {"hubAcceptsClient": true}}));
    fixture.look().await;
    let asked = fixture.asked();
    assert_eq!(asked.iter().filter(|request| request.starts_with("GET")).count(), 0, "{asked:?}");
    assert_eq!(asked[0], "PATCH managedclusters/c1", "its finalizer, set and taint");
    assert_eq!(asked.last().unwrap(), "PATCH managedclusters/c1/status");
}

/// The write and the probe after it take a second, and it was refused in that time.
#[tokio::test(start_paused = true)]
async fn an_acceptance_that_was_written_to_a_second_ago_is_read() {
    let fixture = Fixture::reached(|hub| hub.delayed(Duration::from_millis(500)));
    fixture.stored.lock().patch(CLUSTER, json!({"spec": {"hubAcceptsClient": true}}));
    fixture.stored.lock().other = Some(json!({"spec": {"hubAcceptsClient": false}}));
    fixture.look_too_late(fixture.object(CLUSTER)).await;
}

/// It has all that it is to have, so nothing was written that would show its version.
#[tokio::test(start_paused = true)]
async fn an_acceptance_that_was_not_written_to_is_read() {
    let fixture = Fixture::new();
    fixture.judge().await;
    let watched = fixture.object(CLUSTER);
    fixture.stored.lock().patch(CLUSTER, json!({"spec": {"hubAcceptsClient": false}}));
    fixture.asked();
    fixture.look_too_late(watched).await;
}

/// The other queue writes its set and taint at the same time.
#[tokio::test]
async fn a_conflict_does_not_delay_a_join() {
    let fixture = Fixture::new();
    fixture.stored.lock().other = Some(json!({"metadata": {"labels": {SET_LABEL: "default"}}}));
    fixture.judge().await;
    assert_eq!(fixture.object(REQUEST)["status"]["conditions"][0]["type"], "Approved");
    assert_eq!(fixture.object(CLUSTER)["spec"]["hubAcceptsClient"], true);
    assert_eq!(patches(&fixture.asked()), 2, "the second has the version that the first one lacked");
}

/// The one that was judged was deleted after it was read.
#[tokio::test]
async fn no_other_cluster_of_the_same_name_is_accepted_in_its_place() {
    for (other, ends) in
        [(json!({"metadata": {"uid": "u-c2"}}), false), (json!({"metadata": {"labels": {SET_LABEL: "default"}}}), true)]
    {
        let fixture = Fixture::new();
        fixture.stored.lock().other = Some(other);
        fixture.stored.lock().ends = ends;
        let judged = fixture.judged("u-r1").await;
        assert!(judged.is_err_and(|failure| failure.is_conflict()), "it is judged again");
        assert_eq!(patches(&fixture.asked()), 1, "the one that was refused");
        assert!(fixture.object(REQUEST)["status"]["conditions"].is_null());
    }
}

/// It was accepted and denied after it was read.
#[tokio::test]
async fn a_refusal_in_the_meantime_wins() {
    let fixture = Fixture::new();
    fixture.stored.lock().other = Some(json!({"metadata": {"annotations": {AUTOMATIC_ANNOTATION: "t"}}}));
    fixture.judge().await;
    assert!(fixture.object(REQUEST)["status"]["conditions"].is_null(), "a person decides");
    assert_eq!(fixture.object(CLUSTER)["spec"]["hubAcceptsClient"], false);
}

/// It was denied while no watch ran: looked at before the list is complete, it would be accepted as
/// before, and nobody would look again.
#[tokio::test]
async fn a_cluster_that_a_list_tells_of_is_looked_at_once_the_list_counts() {
    let fixture = Fixture::new();
    let config = Config::new(&parse_from(["x", "--enable=ocm-registration"]).unwrap()).unwrap();
    let (shared, sources) = Shared::new(&fixture.clusters.hub, &config);
    let mut seen = SeenClusters::new(&shared, sources.clusters);
    let accepted = |is_accepted: bool| {
        let mut cluster = fixture.object(CLUSTER);
        cluster["spec"]["hubAcceptsClient"] = is_accepted.into();
        serde_json::from_value::<DynamicObject>(cluster).unwrap()
    };
    seen.take(Event::Apply(accepted(true)), &fixture.clusters);
    assert_eq!(shared.wakes.next().await.1, "c1");
    for event in [Event::Init, Event::InitApply(accepted(false))] {
        seen.take(event, &fixture.clusters);
        assert_eq!(shared.wakes.waiting(), 0);
    }
    seen.take(Event::InitDone, &fixture.clusters);
    assert_eq!(shared.wakes.waiting(), 1);
    let known = shared.clusters.find(|_| true).unwrap();
    assert_eq!(unpacked(&known).data, accepted(false).data);
    assert!(known.data.is_string(), "it takes little memory");
}
