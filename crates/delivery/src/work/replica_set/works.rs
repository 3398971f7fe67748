//! The works of a set.

use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::{PLACEMENT_LABEL, ReplicaSet, SET_LABEL};
use crate::condition::Condition;
use crate::fields::{self, is_ending, text};
use crate::metadata::without_empty_creation;
use crate::rollout::{self, Existing, State};
use crate::strategy::alike;
use crate::work::GROUP;

/// A work as it is on the hub.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// Its namespace.
    pub cluster: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub generation: i64,
    /// When it was created, in RFC 3339 and UTC: texts that sort as the moments do.
    pub created: String,
    pub is_ending: bool,
    pub labels: Map<String, Json>,
    /// Works of one set may share it.
    pub spec: Arc<Json>,
    /// Whether that is its set's template, as far as it counts ([`differing`]). Only then it has a
    /// state.
    pub is_current: bool,
    pub conditions: Vec<Condition>,
}

/// The work of `set` for `cluster`, by one of its Placements. Without a name, the hub makes one up.
pub fn work(set: &ReplicaSet, key: &str, placement: &str, cluster: &str, name: Option<&str>) -> Json {
    let mut labels = set.labels.clone();
    labels.insert(SET_LABEL.to_owned(), json!(key));
    labels.insert(PLACEMENT_LABEL.to_owned(), json!(placement));
    let mut metadata = json!({"namespace": cluster, "labels": labels});
    let (field, value) = name.map_or(("generateName", set.name.as_str()), |name| ("name", name));
    if let Some(entries) = metadata.as_object_mut() {
        entries.insert(field.to_owned(), json!(value));
    }
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "ManifestWork",
        "metadata": metadata,
        "spec": *set.template,
    })
}

/// Whether two specs of works differ: not by what is null, nor by the times of creation that Go
/// writes in templates, and the metadata that holds nothing else.
pub fn differing(a: &Json, b: &Json) -> bool {
    let plain = |spec: &Json| {
        let mut spec = spec.clone();
        without_empty_creation(&mut spec);
        without_empty_metadata(&mut spec);
        spec
    };
    !alike(a, Some(b)) && !alike(&plain(a), Some(&plain(b)))
}

fn without_empty_metadata(value: &mut Json) {
    match value {
        Json::Object(entries) => {
            entries.retain(|key, value| key != "metadata" || value.as_object().is_none_or(|map| !map.is_empty()));
            entries.values_mut().for_each(without_empty_metadata);
        }
        Json::Array(values) => values.iter_mut().for_each(without_empty_metadata),
        _ => {}
    }
}

/// A JSON merge patch that makes `wanted`, of [`work`], of a work that is there, which the hub
/// refuses when the work is another one or has changed; none, if it is so. Labels that others put
/// there stay.
pub fn patch(known: &Work, wanted: &Json) -> Option<Json> {
    let labels = wanted.pointer("/metadata/labels").and_then(Json::as_object);
    let is_labelled = labels.into_iter().flatten().all(|(key, value)| known.labels.get(key) == Some(value));
    let spec = wanted.get("spec").unwrap_or(&Json::Null);
    if is_labelled && !differing(&known.spec, spec) {
        return None;
    }
    let mut patch = merge_patch(&json!({"spec": *known.spec}), &json!({"spec": spec}));
    if let Some(entries) = patch.as_object_mut() {
        let metadata = json!({"uid": known.uid, "resourceVersion": known.resource_version, "labels": labels});
        entries.insert("metadata".to_owned(), metadata);
    }
    Some(patch)
}

/// RFC 7386: what makes `after` of `before`.
fn merge_patch(before: &Json, after: &Json) -> Json {
    let (Json::Object(old), Json::Object(new)) = (before, after) else { return after.clone() };
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Json::Null);
    }
    for (key, value) in new {
        match old.get(key) {
            Some(known) if known == value => {}
            Some(known @ Json::Object(_)) if value.is_object() => {
                patch.insert(key.clone(), merge_patch(known, value));
            }
            _ => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    Json::Object(patch)
}

// === impl Work ===

impl Work {
    /// Reads all but its spec, which its set's other works may have too.
    pub fn read(object: &Json, spec: Arc<Json>, is_current: bool) -> Self {
        let at = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
        Self {
            cluster: text(object, "/metadata/namespace").to_owned(),
            name: text(object, "/metadata/name").to_owned(),
            uid: text(object, "/metadata/uid").to_owned(),
            resource_version: text(object, "/metadata/resourceVersion").to_owned(),
            generation: at("/metadata/generation").as_i64().unwrap_or(0),
            created: text(object, "/metadata/creationTimestamp").to_owned(),
            is_ending: is_ending(object),
            labels: fields::texts(object, "/metadata/labels")
                .map(|(key, value)| (key.to_owned(), value.into()))
                .collect(),
            spec,
            is_current,
            conditions: serde_json::from_value(at("/status/conditions")).unwrap_or_default(),
        }
    }

    /// Which of the set's Placements it is for.
    pub fn placement(&self) -> &str {
        self.labels.get(PLACEMENT_LABEL).and_then(Json::as_str).unwrap_or_default()
    }

    /// How far it is with the template.
    pub fn existing(&self) -> Existing<'_> {
        let (state, since) = rollout::state(self.generation, &self.conditions);
        Existing { cluster: &self.cluster, state, since }
    }

    pub(super) fn has_succeeded(&self) -> bool {
        self.existing().state == State::Succeeded
    }
}
