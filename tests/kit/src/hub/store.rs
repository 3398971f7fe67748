//! The objects, their versions, and the history that watches replay.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::resource::Resource;

/// Changes remembered for watches that start in the past.
const MAX_HISTORY: usize = 4096;

/// Names one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) resource: Resource,
    /// Empty for cluster-scoped resources.
    pub(super) namespace: String,
    pub(super) name: String,
}

/// One change, with the object before and after.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) version: u64,
    pub(super) key: Key,
    pub(super) before: Option<Value>,
    pub(super) after: Option<Value>,
}

/// The history does not reach back to the version asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expired;

#[derive(Debug)]
pub(super) struct Store {
    state: Mutex<State>,
    /// The current version, for those that wait for the next.
    version: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    version: u64,
    objects: BTreeMap<Key, Value>,
    history: VecDeque<Change>,
    /// The oldest version a watch can start from.
    compacted: u64,
}

// === impl Key ===

impl Key {
    pub(super) fn new(resource: Resource, namespace: &str, name: &str) -> Self {
        Self { resource, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    fn of(resource: Resource, object: &Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let namespace = if resource.namespaced() { text("namespace") } else { "" };
        assert!(!text("name").is_empty(), "an object needs metadata.name: {object}");
        assert!(
            !resource.namespaced() || !namespace.is_empty(),
            "a {resource:?} object needs metadata.namespace: {object}"
        );
        Self::new(resource, namespace, text("name"))
    }
}

// === impl Store ===

impl Store {
    pub(super) fn new() -> Self {
        // Not 1 and not contiguous with anything a test might count, as in a real hub.
        let version = 1000;
        let state = State { version, objects: BTreeMap::new(), history: VecDeque::new(), compacted: version };
        Self { state: Mutex::new(state), version: watch::Sender::new(version) }
    }

    pub(super) fn put(&self, resource: Resource, mut object: Value) -> u64 {
        let key = Key::of(resource, &object);
        let mut state = self.state.lock();
        let version = state.version + 1;
        let before = state.objects.get(&key).cloned();
        object["apiVersion"] = resource.api_version().into();
        object["kind"] = resource.kind().into();
        let uid = before.as_ref().map_or_else(|| json!(format!("uid-{version}")), |old| old["metadata"]["uid"].clone());
        let metadata = &mut object["metadata"];
        metadata["resourceVersion"] = version.to_string().into();
        metadata["uid"] = uid;
        metadata["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
        state.objects.insert(key.clone(), object.clone());
        self.record(&mut state, Change { version, key, before, after: Some(object) });
        version
    }

    pub(super) fn delete(&self, key: &Key) -> Option<Value> {
        let mut state = self.state.lock();
        let before = state.objects.remove(key)?;
        let version = state.version + 1;
        self.record(&mut state, Change { version, key: key.clone(), before: Some(before.clone()), after: None });
        Some(before)
    }

    pub(super) fn get(&self, key: &Key) -> Option<Value> {
        self.state.lock().objects.get(key).cloned()
    }

    /// All objects of a resource in order of namespace and name, and the version they are of.
    pub(super) fn list(&self, resource: Resource) -> (u64, Vec<(Key, Value)>) {
        let state = self.state.lock();
        let of_resource = state.objects.iter().filter(|(key, _)| key.resource == resource);
        (state.version, of_resource.map(|(key, object)| (key.clone(), object.clone())).collect())
    }

    /// The changes of a resource after `version`, and the version they lead to.
    pub(super) fn since(&self, resource: Resource, version: u64) -> Result<(u64, Vec<Change>), Expired> {
        let state = self.state.lock();
        if version < state.compacted {
            return Err(Expired);
        }
        let later = state.history.iter().filter(|change| change.version > version && change.key.resource == resource);
        Ok((state.version, later.cloned().collect()))
    }

    pub(super) fn compact(&self) {
        let mut state = self.state.lock();
        state.version += 1; // so that every version handed out so far is too old
        state.compacted = state.version;
        state.history.clear();
    }

    /// Notifies of every new version.
    pub(super) fn versions(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    fn record(&self, state: &mut State, change: Change) {
        state.version = change.version;
        state.history.push_back(change);
        if state.history.len() > MAX_HISTORY
            && let Some(forgotten) = state.history.pop_front()
        {
            state.compacted = forgotten.version;
        }
        self.version.send_replace(state.version);
    }
}
