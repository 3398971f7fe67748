//! A scripted hub for the publisher: Secrets' metadata, profiles with server-side apply, and
//! members behind the gateway's paths.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Method;
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::calls::MANAGER;
use crate::scripted;

const PROFILES: &str = "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/fleet/clusterprofiles";
const MEMBERS: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/";
const SECRETS: &str = "/api/v1/namespaces/vela-system/secrets";

type Hangs = Box<dyn Fn(&str) -> bool + Send>;

#[derive(Clone)]
pub struct Hub(Arc<Mutex<State>>);

struct State {
    clusters: usize,
    profiles: BTreeMap<String, Value>,
    events: Vec<String>,
    version: u64,
    writes: usize,
    probes: usize,
    hangs: Hangs,
    has_kind: bool,
}

// === impl Hub ===

impl Hub {
    /// A hub with this many registered clusters, `c0` and on.
    pub fn new(clusters: usize) -> Self {
        let (profiles, events, hangs) = (BTreeMap::new(), Vec::new(), Box::new(|_: &str| false));
        let (version, writes, probes, has_kind) = (1, 0, 0, false);
        Self(Arc::new(Mutex::new(State { clusters, profiles, events, version, writes, probes, hangs, has_kind })))
    }

    pub fn client(&self) -> Client {
        let hub = self.clone();
        scripted::client(move |head, body| {
            let uri = head.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
            hub.0.lock().answer(&head.method, &uri, &body)
        })
    }

    /// Makes members with such names hang.
    pub fn hang(&self, hangs: impl Fn(&str) -> bool + Send + 'static) {
        self.0.lock().hangs = Box::new(hangs);
    }

    /// Adds a profile of a manager.
    pub fn put(&self, name: &str, manager: &str) {
        let profile = json!({
            "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
            "metadata": {"name": name, "namespace": "fleet", "uid": format!("uid-{name}"), "resourceVersion": "1",
                "labels": {"x-k8s.io/cluster-manager": manager}},
            "spec": {"clusterManager": {"name": manager}},
        });
        self.0.lock().profiles.insert(name.to_owned(), profile);
    }

    /// Makes discovery list the kind of profiles from now on.
    pub fn serve_kind(&self) {
        self.0.lock().has_kind = true;
    }

    pub fn profile(&self, name: &str) -> Value {
        self.0.lock().profiles[name].clone()
    }

    pub fn writes(&self) -> usize {
        self.0.lock().writes
    }

    pub fn probes(&self) -> usize {
        self.0.lock().probes
    }

    pub fn profiles(&self) -> usize {
        self.0.lock().profiles.len()
    }

    pub fn names(&self) -> Vec<String> {
        self.0.lock().profiles.keys().cloned().collect()
    }

    pub fn manager(&self, name: &str) -> String {
        self.0.lock().profiles[name]["spec"]["clusterManager"]["name"].as_str().unwrap_or_default().to_owned()
    }

    /// The condition's status by the cluster's name.
    pub fn conditions(&self) -> Vec<(String, String)> {
        let state = self.0.lock();
        let status = |profile: &Value| profile["status"]["conditions"][0]["status"].as_str().unwrap_or("").to_owned();
        state.profiles.iter().map(|(name, profile)| (name.clone(), status(profile))).collect()
    }

    pub fn events(&self) -> Vec<String> {
        self.0.lock().events.clone()
    }
}

// === impl State ===

impl State {
    /// None: no response.
    fn answer(&mut self, method: &Method, uri: &str, body: &Value) -> Option<(u16, Value)> {
        if uri.contains("sendInitialEvents") {
            return Some((422, json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 422})));
        }
        if uri.contains("watch=") {
            return None; // only the publisher changes objects
        }
        if let Some(rest) = uri.strip_prefix(MEMBERS) {
            return self.member(rest);
        }
        if uri.starts_with(SECRETS) {
            let items: Vec<_> = (0..self.clusters).map(secret).collect();
            return Some((200, list("PartialObjectMetadataList", "meta.k8s.io/v1", &items)));
        }
        let Some(rest) = uri.strip_prefix(PROFILES) else {
            return Some(if *method == Method::GET { self.discover(uri) } else { self.tell(body) });
        };
        let path = rest.split('?').next().unwrap_or_default().trim_start_matches('/');
        match (method, path.split_once('/')) {
            (&Method::GET, _) => {
                let items: Vec<_> = self.profiles.values().cloned().collect();
                Some((200, list("ClusterProfileList", "multicluster.x-k8s.io/v1alpha1", &items)))
            }
            (&Method::DELETE, _) => {
                self.writes += 1;
                self.profiles.remove(path);
                Some((200, json!({"kind": "Status", "apiVersion": "v1", "status": "Success"})))
            }
            (_, Some((name, subresource))) => Some((200, self.apply(name, subresource, body))),
            (_, None) => Some((200, self.apply(path, "", body))),
        }
    }

    fn tell(&mut self, event: &Value) -> (u16, Value) {
        self.events.push(event.to_string());
        (201, event.clone())
    }

    fn discover(&self, uri: &str) -> (u16, Value) {
        let version = json!({"groupVersion": "multicluster.x-k8s.io/v1alpha1", "version": "v1alpha1"});
        let group = json!({"name": "multicluster.x-k8s.io", "versions": [version], "preferredVersion": version});
        let resource = json!({"name": "clusterprofiles", "singularName": "clusterprofile", "namespaced": true,
            "kind": "ClusterProfile", "verbs": ["list", "watch", "patch"]});
        match uri {
            "/apis" if self.has_kind => (200, json!({"kind": "APIGroupList", "groups": [group]})),
            "/apis" => (200, json!({"kind": "APIGroupList", "groups": []})),
            "/apis/multicluster.x-k8s.io/v1alpha1" => (
                200,
                json!({"kind": "APIResourceList", "groupVersion": version["groupVersion"], "resources": [resource]}),
            ),
            // Includes definitions, which need a right that some installations do not give.
            _ => (403, json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "forbidden"})),
        }
    }

    fn member(&mut self, rest: &str) -> Option<(u16, Value)> {
        let (name, path) = rest.split_once("/proxy").unwrap_or_default();
        if (self.hangs)(name) {
            return None;
        }
        match path {
            "/readyz" => {
                self.probes += 1;
                Some((200, json!("ok")))
            }
            "/version" => Some((200, json!({"gitVersion": "v1.35.4"}))),
            _ => Some((404, json!({"kind": "Status", "code": 404, "message": "not found"}))),
        }
    }

    fn apply(&mut self, name: &str, subresource: &str, document: &Value) -> Value {
        self.writes += 1;
        self.version += 1;
        let new = json!({"metadata": {"uid": format!("uid-{name}"), "managedFields": []}});
        let profile = self.profiles.entry(name.to_owned()).or_insert(new);
        let entries = profile["metadata"]["managedFields"].take();
        let mut entries = entries.as_array().cloned().unwrap_or_default();
        entries.retain(|entry| entry["subresource"] != subresource);
        let mut said = document.clone();
        for field in ["name", "namespace", "uid"] {
            said["metadata"].as_object_mut().map(|metadata| metadata.remove(field));
        }
        let owned = fields(&said);
        entries.push(json!({"manager": MANAGER, "operation": "Apply", "subresource": subresource, "fieldsV1": owned}));
        merge(profile, document);
        profile["metadata"]["managedFields"] = entries.into();
        profile["metadata"]["resourceVersion"] = self.version.to_string().into();
        profile.clone()
    }
}

fn list(kind: &str, version: &str, items: &[Value]) -> Value {
    json!({"kind": kind, "apiVersion": version, "metadata": {"resourceVersion": "1"}, "items": items})
}

fn secret(number: usize) -> Value {
    json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": {"name": format!("c{number}"), "namespace": "vela-system", "uid": format!("u{number}"),
            "resourceVersion": "1", "labels": {"cluster.core.oam.dev/cluster-credential-type": "X509Certificate"}},
    })
}

/// Replaces lists, because there is only one manager.
fn merge(object: &mut Value, document: &Value) {
    match (object, document) {
        (Value::Object(object), Value::Object(document)) => {
            for (name, value) in document {
                merge(object.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (object, document) => *object = document.clone(),
    }
}

/// `FieldsV1`, with lists by name or type.
fn fields(document: &Value) -> Value {
    let Some(document) = document.as_object() else { return json!({}) };
    let named = document.iter().filter(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind"));
    let fields: Map<String, Value> = named
        .map(|(name, value)| {
            let Some(items) = value.as_array() else { return (format!("f:{name}"), fields(value)) };
            let items = items.iter().filter_map(|item| {
                let key = ["type", "name"].into_iter().find_map(|key| Some((key, item.get(key)?)))?;
                Some((format!("k:{}", json!({key.0: key.1})), fields(item)))
            });
            (format!("f:{name}"), Value::Object(items.collect()))
        })
        .collect();
    Value::Object(fields)
}
