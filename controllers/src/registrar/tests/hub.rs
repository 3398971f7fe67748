//! A scripted hub for the registrar and its feeds: Secrets of a fleet and of clusters, with
//! watches, and with the answers of a hub that fails.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream;
use http::{Method, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use kit::pki::Authority;
use kube::Client;
use parking_lot::Mutex;
use register::reading::{Reading, SecretObject};
use register::{Rules, fingerprint, kubeconfig_secret};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::calls::MANAGER;
use crate::scripted;
use crate::secrets::{HASH_ANNOTATION, OBJECT_ANNOTATION, SOURCE_LABEL, UID_ANNOTATION};

pub const FLEET: &str = "fleet";
pub const CLUSTERS: &str = "vela-system";
/// Objects in one page of a list.
const PAGE: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    List,
    /// A page of a list after the first.
    Page,
    Watch,
    Read,
    Write,
    Remove,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Status(u16),
    /// 429 with `Retry-After`, in seconds.
    Busy(u32),
    /// 409: another manager has this field.
    Owned(&'static str),
    /// The connection breaks.
    Reset,
}

type EventFrame = Result<Frame<Bytes>, io::Error>;

#[derive(Clone, Default)]
pub struct Hub(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    objects: BTreeMap<(String, String), Value>,
    version: u64,
    /// Version, namespace, and the watch event.
    history: Vec<(u64, String, Value)>,
    watches: Vec<(String, mpsc::UnboundedSender<EventFrame>)>,
    faults: HashMap<(Call, &'static str), VecDeque<Fault>>,
    asked: Vec<(Call, String, Instant)>,
}

enum Answer {
    Whole(u16, Value),
    Events(mpsc::UnboundedReceiver<EventFrame>),
    Reset,
}

/// A kubeconfig with this `user` entry.
fn kubeconfig(user: &Value) -> String {
    let authority = STANDARD.encode(Authority::new("ca").root_pem());
    json!({
        "clusters": [{"name": "c", "cluster": {
            "server": "https://10.9.8.7", "certificate-authority-data": authority}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "it", "context": {"cluster": "c", "user": "u"}}],
    })
    .to_string()
}

// === impl Hub ===

impl Hub {
    pub fn client(&self) -> Client {
        let hub = self.clone();
        scripted::serving(move |request| {
            let answer = hub.0.lock().answer(request.method(), request.uri(), request.body());
            std::future::ready(answer.response())
        })
    }

    /// Writes a Secret with a kubeconfig that has this token.
    pub fn put_source(&self, name: &str, token: &str) {
        self.put_user(name, &json!({"token": token}));
    }

    /// Writes a Secret with a kubeconfig that has this `user` entry.
    pub fn put_user(&self, name: &str, user: &Value) {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"labels": {"cluster.core.oam.dev/kubeconfig": "true"}},
            "data": {"kubeconfig": STANDARD.encode(kubeconfig(user))},
        });
        self.0.lock().put(FLEET, name, secret);
    }

    /// Writes another token into a source's Secret.
    pub fn rotate(&self, name: &str, token: &str) {
        let mut state = self.0.lock();
        let Some(mut secret) = state.objects.get(&(FLEET.to_owned(), name.to_owned())).cloned() else { return };
        secret["data"]["kubeconfig"] = STANDARD.encode(kubeconfig(&json!({"token": token}))).into();
        state.put(FLEET, name, secret);
    }

    /// Writes an object with the same content and another annotation.
    pub fn annotate(&self, namespace: &str, name: &str) {
        let mut state = self.0.lock();
        let text = state.version.to_string();
        state.change(namespace, name, |metadata| metadata["annotations"]["touched"] = text.into());
    }

    pub fn label(&self, namespace: &str, name: &str, key: &str, value: &str) {
        self.0.lock().change(namespace, name, |metadata| metadata["labels"][key] = value.into());
    }

    pub fn delete(&self, namespace: &str, name: &str) {
        self.0.lock().delete(namespace, name);
    }

    /// The version of a cluster's Secret.
    pub fn cluster(&self, name: &str) -> Option<String> {
        let state = self.0.lock();
        let secret = state.objects.get(&(CLUSTERS.to_owned(), name.to_owned()))?;
        Some(secret["metadata"]["resourceVersion"].to_string())
    }

    /// Writes into a cluster's Secret the hash of what its source has now.
    pub fn write_hash(&self, name: &str) {
        let mut state = self.0.lock();
        let source = &state.objects[&(FLEET.to_owned(), name.to_owned())];
        let reading = kubeconfig_secret::read(&SecretObject::read(source).unwrap(), &Rules::default());
        let Reading::Register(cluster) = reading else { panic!("{reading:?}") };
        let hash = fingerprint::of(&cluster, source["metadata"]["uid"].as_str().unwrap());
        state.change(CLUSTERS, name, |metadata| metadata["annotations"][HASH_ANNOTATION] = hash.into());
    }

    /// A part of a cluster's Secret.
    pub fn field(&self, name: &str, pointer: &str) -> Option<Value> {
        let state = self.0.lock();
        state.objects.get(&(CLUSTERS.to_owned(), name.to_owned()))?.pointer(pointer).cloned()
    }

    /// Writes a cluster's Secret as such an object would have registered it.
    pub fn put_cluster(&self, name: &str, reference: &str) {
        let annotations = json!({OBJECT_ANNOTATION: reference, UID_ANNOTATION: "uid"});
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"labels": {SOURCE_LABEL: "kubeconfig"}, "annotations": annotations}});
        self.0.lock().put(CLUSTERS, name, secret);
    }

    /// Gives a cluster's Secret to these managers of fields.
    pub fn manage(&self, name: &str, managers: &[&str]) {
        let entries: Vec<Value> = managers.iter().map(|manager| json!({"manager": manager})).collect();
        self.0.lock().change(CLUSTERS, name, |metadata| metadata["managedFields"] = entries.into());
    }

    /// Answers the next calls with `faults`, one each.
    pub fn fail(&self, call: Call, namespace: &'static str, faults: impl IntoIterator<Item = Fault>) {
        self.0.lock().faults.entry((call, namespace)).or_default().extend(faults);
    }

    /// Sends `fault` to the open watches of a namespace, and ends them.
    pub fn interrupt(&self, namespace: &str, fault: Fault) {
        let mut state = self.0.lock();
        state.watches.retain(|(of, watch)| {
            if of != namespace {
                return true;
            }
            let told = match fault {
                Fault::Reset => Err(io::ErrorKind::ConnectionReset.into()),
                Fault::Status(code) => Ok(line(&json!({"type": "ERROR", "object": status(code, None)}))),
                Fault::Busy(seconds) => Ok(line(&json!({"type": "ERROR", "object": status(429, Some(seconds))}))),
                Fault::Owned(field) => Ok(line(&json!({"type": "ERROR", "object": owned(field)}))),
            };
            // The watch may be closed already.
            let _ = watch.send(told);
            false
        });
    }

    /// Times of such calls.
    pub fn asked(&self, call: Call, namespace: &str) -> Vec<Instant> {
        let state = self.0.lock();
        state.asked.iter().filter(|(of, at, _)| *of == call && at == namespace).map(|(.., when)| *when).collect()
    }

    pub fn forget_asked(&self) {
        self.0.lock().asked.clear();
    }

    /// Whether every fault has been used.
    pub fn is_sound(&self) -> bool {
        self.0.lock().faults.values().all(VecDeque::is_empty)
    }
}

// === impl Answer ===

impl Answer {
    fn response(self) -> io::Result<Response<UnsyncBoxBody<Bytes, io::Error>>> {
        let whole = |value: Value| Full::new(Bytes::from(value.to_string()));
        let (code, body): (u16, UnsyncBoxBody<Bytes, io::Error>) = match self {
            Self::Whole(code, value) => (code, whole(value).map_err(|never| match never {}).boxed_unsync()),
            Self::Events(events) => {
                let events = stream::unfold(events, async |mut told| Some((told.recv().await?, told)));
                (200, StreamBody::new(events).boxed_unsync())
            }
            Self::Reset => return Err(io::ErrorKind::ConnectionReset.into()),
        };
        Ok(Response::builder().status(code).body(body).expect("an answer"))
    }
}

// === impl State ===

impl State {
    fn answer(&mut self, method: &Method, uri: &http::Uri, body: &Value) -> Answer {
        let query = uri.query().unwrap_or_default();
        let path: Vec<&str> = uri.path().trim_matches('/').split('/').collect();
        let (namespace, name) = match path[..] {
            ["api", "v1", "namespaces", namespace, "secrets"] => (namespace, None),
            ["api", "v1", "namespaces", namespace, "secrets", name] => (namespace, Some(name)),
            _ => return Answer::Whole(201, body.clone()), // an Event
        };
        let parameter = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        if parameter("sendInitialEvents").is_some() {
            // What fails here are pages.
            return Answer::Whole(422, status(422, None));
        }
        let call = match (method, name) {
            (&Method::PATCH, _) => Call::Write,
            (&Method::DELETE, _) => Call::Remove,
            (_, Some(_)) => Call::Read,
            _ if parameter("watch").is_some() => Call::Watch,
            _ if parameter("continue").is_some() => Call::Page,
            _ => Call::List,
        };
        self.asked.push((call, namespace.to_owned(), Instant::now()));
        let faults = self.faults.iter_mut().find(|((of, at), _)| *of == call && *at == namespace);
        match faults.and_then(|(_, faults)| faults.pop_front()) {
            Some(Fault::Status(code)) => return Answer::Whole(code, status(code, None)),
            Some(Fault::Busy(seconds)) => return Answer::Whole(429, status(429, Some(seconds))),
            Some(Fault::Owned(field)) => return Answer::Whole(409, owned(field)),
            Some(Fault::Reset) => return Answer::Reset,
            None => {}
        }
        let name = name.unwrap_or_default();
        match call {
            Call::List | Call::Page => Answer::Whole(200, self.list(namespace, parameter("continue"))),
            Call::Watch => Answer::Events(self.watch(namespace, parameter("resourceVersion"))),
            Call::Read => match self.objects.get(&(namespace.to_owned(), name.to_owned())) {
                Some(object) => Answer::Whole(200, object.clone()),
                None => Answer::Whole(404, status(404, None)),
            },
            Call::Write => self.write(namespace, name, body),
            Call::Remove => self.remove(namespace, name, &body["preconditions"]),
        }
    }

    fn list(&self, namespace: &str, from: Option<&str>) -> Value {
        let from: usize = from.and_then(|from| from.parse().ok()).unwrap_or_default();
        let all: Vec<Value> =
            self.objects.iter().filter(|((of, _), _)| of == namespace).map(|(_, object)| metadata(object)).collect();
        let next = (from + PAGE < all.len()).then(|| (from + PAGE).to_string());
        let items: Vec<Value> = all.into_iter().skip(from).take(PAGE).collect();
        json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "items": items,
            "metadata": {"resourceVersion": self.version.to_string(), "continue": next}})
    }

    fn watch(&mut self, namespace: &str, from: Option<&str>) -> mpsc::UnboundedReceiver<EventFrame> {
        let from: u64 = from.and_then(|from| from.parse().ok()).unwrap_or_default();
        let (watch, told) = mpsc::unbounded_channel();
        for (version, of, event) in &self.history {
            if *version > from && of == namespace {
                let _ = watch.send(Ok(line(event)));
            }
        }
        self.watches.push((namespace.to_owned(), watch));
        told
    }

    /// Server-side apply with the only manager.
    fn write(&mut self, namespace: &str, name: &str, document: &Value) -> Answer {
        let known = self.objects.get(&(namespace.to_owned(), name.to_owned()));
        let uid = known.map(|known| &known["metadata"]["uid"]);
        if document["metadata"]["uid"].is_string() && uid != Some(&document["metadata"]["uid"]) {
            return Answer::Whole(409, status(409, None));
        }
        let mut object = document.clone();
        object["metadata"]["managedFields"] = json!([{"manager": MANAGER}]);
        Answer::Whole(200, metadata(&self.put(namespace, name, object)))
    }

    fn remove(&mut self, namespace: &str, name: &str, only: &Value) -> Answer {
        let Some(known) = self.objects.get(&(namespace.to_owned(), name.to_owned())) else {
            return Answer::Whole(404, status(404, None));
        };
        if ["uid", "resourceVersion"].iter().any(|field| known["metadata"][field] != only[field]) {
            return Answer::Whole(409, status(409, None));
        }
        self.delete(namespace, name);
        Answer::Whole(200, json!({"apiVersion": "v1", "kind": "Status", "status": "Success"}))
    }

    fn put(&mut self, namespace: &str, name: &str, mut object: Value) -> Value {
        self.version += 1;
        let key = (namespace.to_owned(), name.to_owned());
        let known = self.objects.get(&key).map(|known| known["metadata"]["uid"].clone());
        let event = if known.is_some() { "MODIFIED" } else { "ADDED" };
        object["metadata"]["uid"] = known.unwrap_or_else(|| format!("uid-{}", self.version).into());
        object["metadata"]["name"] = name.into();
        object["metadata"]["namespace"] = namespace.into();
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
        self.objects.insert(key, object.clone());
        self.tell(namespace, event, &object);
        object
    }

    fn change(&mut self, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) {
        let Some(mut object) = self.objects.get(&(namespace.to_owned(), name.to_owned())).cloned() else { return };
        change(&mut object["metadata"]);
        self.put(namespace, name, object);
    }

    fn delete(&mut self, namespace: &str, name: &str) {
        let Some(mut object) = self.objects.remove(&(namespace.to_owned(), name.to_owned())) else { return };
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.tell(namespace, "DELETED", &object);
    }

    fn tell(&mut self, namespace: &str, event: &str, object: &Value) {
        let event = json!({"type": event, "object": metadata(object)});
        for (_, watch) in self.watches.iter().filter(|(of, _)| of == namespace) {
            let _ = watch.send(Ok(line(&event)));
        }
        self.history.push((self.version, namespace.to_owned(), event));
    }
}

fn metadata(object: &Value) -> Value {
    json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"]})
}

/// The type comes first, as API servers write it: a reader knows by it what the object is.
fn line(event: &Value) -> Frame<Bytes> {
    let (kind, object) = (&event["type"], &event["object"]);
    Frame::data(Bytes::from(format!("{{\"type\":{kind},\"object\":{object}}}\n")))
}

fn owned(field: &str) -> Value {
    let mut status = status(409, None);
    let cause = json!({"reason": "FieldManagerConflict", "message": "conflict with \"somebody\"", "field": field});
    status["details"] = json!({"causes": [cause]});
    status
}

fn status(code: u16, after: Option<u32>) -> Value {
    let reason = match code {
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        _ => "InternalError",
    };
    json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason,
        "message": format!("the hub is in trouble: {code}"), "details": {"retryAfterSeconds": after}})
}
