//! A hub with a work, a cluster, and no events from its watches; and the cluster's objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Method;
use http::header::ACCEPT;
use http::request::Parts;
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::parts::manifestworks::work::FINALIZER;
use crate::scripted;

/// The group that the member lacks at first.
const LATE: &str = "late.io";
const GROUPS: [(&str, &str, &str, bool); 5] = [
    (LATE, "lates", "Late", false),
    ("", "configmaps", "ConfigMap", true),
    ("batch", "jobs", "Job", true),
    ("work.open-cluster-management.io", "manifestworks", "ManifestWork", true),
    ("cluster.open-cluster-management.io", "managedclusters", "ManagedCluster", false),
];

#[derive(Clone, Default)]
pub struct Hub(Arc<Mutex<State>>);

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

struct State {
    work: Value,
    /// Version of its work, and of the member's objects.
    version: u64,
    /// The member's objects, by path.
    objects: BTreeMap<String, Value>,
    /// The answer to reviews.
    is_allowed: bool,
    is_ended: bool,
    /// A group that the member does not have.
    lacks: Option<&'static str>,
    /// It does not answer requests for the work alone.
    is_unread: bool,
    /// Bytes of a status, beyond which it is refused.
    largest: usize,
    /// Method and path of each.
    writes: Vec<String>,
    /// Number of requests for the work alone.
    reads: usize,
}

// === impl Hub ===

impl Hub {
    pub fn client(&self) -> Client {
        let hub = self.clone();
        scripted::client(move |head, body| hub.0.lock().answer(head, body))
    }

    /// Deletes its work, without a watch event.
    pub fn end_work(&self) {
        self.0.lock().is_ended = true;
    }

    /// Sets whether it answers requests for the work alone.
    pub fn tells_work(&self, is_told: bool) {
        self.0.lock().is_unread = !is_told;
    }

    /// It takes no status of more bytes.
    pub fn takes(&self, largest: usize) {
        self.0.lock().largest = largest;
    }

    /// Its work, as it is now.
    pub fn told(&self) -> Value {
        self.0.lock().work.clone()
    }

    /// Changes its work, as another client.
    pub fn edit(&self, change: impl FnOnce(&mut Value)) {
        let mut state = self.0.lock();
        change(&mut state.work);
        let version = state.next();
        state.work["metadata"]["resourceVersion"] = version;
    }

    /// An object of the member; null if it does not exist.
    pub fn object(&self, path: &str) -> Value {
        self.0.lock().objects.get(path).cloned().unwrap_or_default()
    }

    /// Changes an object of the member, as another client.
    pub fn put(&self, path: &str, change: &Value) {
        let mut state = self.0.lock();
        let version = state.next();
        let object = state.objects.get_mut(path).expect("an object");
        merge(object, change);
        object["metadata"]["resourceVersion"] = version;
    }

    /// Removes an object, as another client.
    pub fn remove(&self, path: &str) {
        self.0.lock().objects.remove(path).expect("an object");
    }

    /// The member gets the group that it lacks.
    pub fn defines_late(&self) {
        self.0.lock().lacks = None;
    }

    /// Sets the member's answer to reviews.
    pub fn allows(&self, is_allowed: bool) {
        self.0.lock().is_allowed = is_allowed;
    }

    /// Number of requests for the work alone, of any client.
    pub fn reads(&self) -> usize {
        self.0.lock().reads
    }

    /// All writes, of any client.
    pub fn writes(&self) -> Vec<String> {
        self.0.lock().writes.clone()
    }
}

// === impl State ===

impl Default for State {
    fn default() -> Self {
        let (objects, writes) = (BTreeMap::new(), Vec::new());
        Self {
            work: work(),
            version: 7,
            objects,
            is_allowed: true,
            is_ended: false,
            lacks: Some(LATE),
            is_unread: false,
            largest: usize::MAX,
            writes,
            reads: 0,
        }
    }
}

impl State {
    /// None if there is no answer.
    fn answer(&mut self, request: &Parts, body: Value) -> Option<(u16, Value)> {
        let (method, path) = (&request.method, request.uri.path());
        let asks = |parameter: &str| request.uri.query().is_some_and(|query| query.contains(parameter));
        if asks("sendInitialEvents=") {
            return Some((422, json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 422})));
        }
        if asks("watch=") {
            return None;
        }
        let of_member = path.split_once("/proxy").map(|(_, of_member)| of_member);
        if of_member == Some(REVIEWS) {
            return Some((201, json!({"status": {"allowed": self.is_allowed}})));
        }
        if request.uri.query().is_some_and(|query| query.contains("dryRun=All")) {
            return Some(of_member.map_or_else(missing, |path| self.try_object(path, &body)));
        }
        if method != Method::GET {
            self.writes.push(format!("{method} {path}"));
            return Some(match of_member {
                Some(path) => self.write_object(method, path, body),
                None => self.write(path, &body),
            });
        }
        if let Some(object) = of_member.and_then(|path| self.objects.get(path)) {
            return Some((200, object.clone()));
        }
        let accept = request.headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
        let is_metadata = accept.is_some_and(|accept| accept.contains("PartialObject"));
        let path = path.split_once("/proxy").map_or(path, |(_, of_member)| of_member);
        let names: Vec<&str> = path.trim_matches('/').split('/').collect();
        Some(match names[..] {
            ["apis"] => (200, json!({"kind": "APIGroupList", "groups": self.groups()})),
            ["api", "v1"] => (200, resources("")),
            ["apis", group, "v1"] => (200, resources(group)),
            [.., "namespaces", "kube-system"] => (200, json!({"metadata": {"name": "kube-system", "uid": "u"}})),
            [.., "manifestworks"] => (200, self.list(is_metadata, &self.work)),
            [.., "manifestworks", "w"] => self.read(),
            [.., "managedclusters"] => (200, listed(is_metadata, "ManagedCluster", &[cluster()], "5")),
            _ => missing(),
        })
    }

    /// Writes to the hub: its work, or an object that nothing reads.
    fn write(&mut self, path: &str, change: &Value) -> (u16, Value) {
        if change["status"].to_string().len() > self.largest {
            return (
                413,
                json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 413, "message": "no"}),
            );
        }
        if path.contains("/manifestworks/w") {
            merge(&mut self.work, change);
            self.work["metadata"]["resourceVersion"] = self.next();
        }
        (200, self.work.clone())
    }

    fn write_object(&mut self, method: &Method, path: &str, body: Value) -> (u16, Value) {
        let version = self.next();
        let path = path.strip_suffix("/status").unwrap_or(path);
        let written = match *method {
            Method::POST => {
                let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                let object = self.objects.entry(format!("{path}/{name}")).or_insert(body);
                object["metadata"]["uid"] = format!("of-{version}").into();
                object
            }
            Method::DELETE => {
                let gone = self.objects.remove(path);
                return gone.map_or_else(missing, |gone| (200, gone));
            }
            _ => {
                let Some(object) = self.objects.get_mut(path) else { return missing() };
                merge(object, &body);
                object
            }
        };
        written["metadata"]["resourceVersion"] = version;
        (200, written.clone())
    }

    /// The answer to a write that stores nothing.
    fn try_object(&self, path: &str, body: &Value) -> (u16, Value) {
        let Some(mut object) = self.objects.get(path).cloned() else { return missing() };
        merge(&mut object, body);
        (200, object)
    }

    fn next(&mut self) -> Value {
        self.version += 1;
        self.version.to_string().into()
    }

    fn read(&mut self) -> (u16, Value) {
        self.reads += 1;
        let why = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500, "message": "no"});
        if self.is_unread { (500, why) } else { (200, self.work.clone()) }
    }

    fn groups(&self) -> Vec<Value> {
        let has = |group: &str| !group.is_empty() && self.lacks != Some(group);
        GROUPS.iter().filter(|one| has(one.0)).map(|one| of_group(one.0)).collect()
    }

    fn list(&self, is_metadata: bool, work: &Value) -> Value {
        let (items, version) = if self.is_ended { (&[][..], "20") } else { (std::slice::from_ref(work), "10") };
        listed(is_metadata, "ManifestWork", items, version)
    }
}

/// A JSON merge patch.
fn merge(object: &mut Value, change: &Value) {
    let Value::Object(change) = change else {
        object.clone_from(change);
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (key, value) in change {
        if value.is_null() {
            object.as_object_mut().expect("a map").remove(key);
        } else {
            merge(&mut object[key], value);
        }
    }
}

fn missing() -> (u16, Value) {
    let why = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound",
        "message": "not found", "details": {"name": "x", "kind": "y"}});
    (404, why)
}

fn of_group(group: &str) -> Value {
    let version = json!({"groupVersion": format!("{group}/v1"), "version": "v1"});
    json!({"name": group, "versions": [version], "preferredVersion": version})
}

fn resources(group: &str) -> Value {
    let of_group = GROUPS.iter().filter(|one| one.0 == group);
    let resources = of_group.map(|(_, name, kind, is_namespaced)| {
        json!({"name": name, "singularName": "", "namespaced": is_namespaced, "kind": kind, "verbs": ["list"]})
    });
    let resources: Vec<Value> = resources.collect();
    json!({"kind": "APIResourceList", "groupVersion": format!("{group}/v1"), "resources": resources})
}

fn listed(is_metadata: bool, kind: &str, items: &[Value], version: &str) -> Value {
    let items: Vec<Value> = items
        .iter()
        .map(|item| {
            let metadata = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
                "metadata": item["metadata"]});
            if is_metadata { metadata } else { item.clone() }
        })
        .collect();
    let kind = if is_metadata { "PartialObjectMetadata" } else { kind };
    json!({"kind": format!("{kind}List"), "apiVersion": "v1", "metadata": {"resourceVersion": version}, "items": items})
}

fn cluster() -> Value {
    json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": "c1", "uid": "c", "resourceVersion": "1",
            "annotations": {"cluster.core.oam.dev/delivery": "push"}}})
}

/// The work while it exists.
pub fn work() -> Value {
    json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "w", "namespace": "c1", "uid": "w", "resourceVersion": "7", "generation": 1,
            "finalizers": [FINALIZER]},
        "spec": {"workload": {"manifests": []}}})
}
