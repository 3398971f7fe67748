//! A hub with a work, a cluster, and nothing that its watches tell.

use std::sync::Arc;

use http::header::ACCEPT;
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::service_fn;

use crate::parts::manifestworks::work::FINALIZER;

const GROUPS: [(&str, &str, &str, bool); 2] = [
    ("work.open-cluster-management.io", "manifestworks", "ManifestWork", true),
    ("cluster.open-cluster-management.io", "managedclusters", "ManagedCluster", false),
];

#[derive(Clone, Default)]
pub struct Hub(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    is_ended: bool,
    /// It answers nobody who asks for the work alone.
    is_unread: bool,
    /// Method and path of each.
    writes: Vec<String>,
    /// Times that the work alone was asked for.
    reads: usize,
}

// === impl Hub ===

impl Hub {
    pub fn client(&self) -> Client {
        let hub = self.clone();
        let answer = move |request: Request<Body>| {
            let answered = hub.0.lock().answer(&request);
            async move {
                let Some((code, body)) = answered else { return std::future::pending().await };
                let body = Body::from(body.to_string().into_bytes());
                Ok::<_, tower::BoxError>(Response::builder().status(code).body(body)?)
            }
        };
        Client::new(service_fn(answer), "default")
    }

    /// Its work ends, and no watch tells.
    pub fn end_work(&self) {
        self.0.lock().is_ended = true;
    }

    /// Whether it says what the work is to whoever asks for it alone.
    pub fn tells_work(&self, is_told: bool) {
        self.0.lock().is_unread = !is_told;
    }

    /// How often anybody asked what the work is, and for it alone.
    pub fn reads(&self) -> usize {
        self.0.lock().reads
    }

    /// By whomever.
    pub fn writes(&self) -> Vec<String> {
        self.0.lock().writes.clone()
    }
}

// === impl State ===

impl State {
    /// None: no answer.
    fn answer(&mut self, request: &Request<Body>) -> Option<(u16, Value)> {
        let (method, path) = (request.method(), request.uri().path());
        if request.uri().query().is_some_and(|query| query.contains("watch=")) {
            return None;
        }
        if method != Method::GET {
            self.writes.push(format!("{method} {path}"));
            return Some((200, work()));
        }
        let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
        let is_metadata = accept.is_some_and(|accept| accept.contains("PartialObject"));
        let path = path.split_once("/proxy").map_or(path, |(_, of_member)| of_member);
        let names: Vec<&str> = path.trim_matches('/').split('/').collect();
        Some(match names[..] {
            ["apis"] => (200, json!({"kind": "APIGroupList", "groups": GROUPS.map(|(group, ..)| of_group(group))})),
            ["apis", group, "v1"] => (200, resources(group)),
            [.., "namespaces", "kube-system"] => (200, json!({"metadata": {"name": "kube-system", "uid": "u"}})),
            [.., "manifestworks"] => (200, self.list(is_metadata, &work())),
            [.., "manifestworks", "w"] => self.read(),
            [.., "managedclusters"] => (200, listed(is_metadata, "ManagedCluster", &[cluster()], "5")),
            _ => (
                404,
                json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
                "reason": "NotFound", "message": "not found", "details": {"name": "x", "kind": "y"}}),
            ),
        })
    }

    fn read(&mut self) -> (u16, Value) {
        self.reads += 1;
        let why = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500, "message": "no"});
        if self.is_unread { (500, why) } else { (200, work()) }
    }

    fn list(&self, is_metadata: bool, work: &Value) -> Value {
        let (items, version) = if self.is_ended { (&[][..], "20") } else { (std::slice::from_ref(work), "10") };
        listed(is_metadata, "ManifestWork", items, version)
    }
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

/// As it is while it is there.
pub fn work() -> Value {
    json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "w", "namespace": "c1", "uid": "w", "resourceVersion": "7", "generation": 1,
            "finalizers": [FINALIZER]},
        "spec": {"workload": {"manifests": []}}})
}
