//! The works of a set.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::{Map, Value as Json, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{PLACEMENT_LABEL, ReplicaSet, SET_LABEL};
use crate::condition::{self, Condition, Status};
use crate::fields::{self, is_ending, list, text};
use crate::metadata::without_empty_creation;
use crate::rollout::{self, Existing, RolloutStatus};
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
    /// When its spec was written last, by any writer (`metadata.managedFields`); none: unknown.
    pub written: Option<OffsetDateTime>,
    pub is_ending: bool,
    pub labels: Map<String, Json>,
    /// Works of one set may share it.
    pub spec: Arc<Json>,
    /// Whether that is its set's template, as far as it counts ([`differing`]). Only then it has a
    /// state.
    pub is_current: bool,
    pub conditions: Vec<Condition>,
}

/// What a work is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name<'n> {
    /// It is there.
    Known(&'n str),
    /// The hub refuses a second one: [`name`].
    Only,
    /// The hub makes one up, as it does for upstream.
    MadeUp,
}

/// What Kubernetes appends to a `generateName` is so long, of these, and what it appends it to is
/// so long at most (`k8s.io/apiserver/pkg/storage/names`).
const SUFFIX: usize = 5;
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const STEM: usize = 58;

/// The name of the work of a set for a cluster by one of its Placements. It looks like one that the
/// hub makes up of the set's, and is always the same: of two creates of whichever processes, one is
/// refused.
pub fn name(set: &ReplicaSet, placement: &str, cluster: &str) -> String {
    // None of these holds a slash.
    let digest = digest(&SHA256, format!("{}/{}/{placement}/{cluster}", set.namespace, set.name).as_bytes());
    let letter = |byte: &u8| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]);
    let suffix: String = digest.as_ref().iter().take(SUFFIX).map(letter).collect();
    let stem = &set.name[..set.name.floor_char_boundary(STEM)];
    format!("{stem}{suffix}")
}

/// The work of `set` for `cluster`, by one of its Placements.
pub fn work(set: &ReplicaSet, key: &str, placement: &str, cluster: &str, called: Name<'_>) -> Json {
    let labels = labels(set, key, placement);
    let metadata = match called {
        Name::Known(name) => json!({"namespace": cluster, "labels": labels, "name": name}),
        Name::Only => {
            let name = name(set, placement, cluster);
            json!({"namespace": cluster, "labels": labels, "name": name, "generateName": set.name})
        }
        Name::MadeUp => json!({"namespace": cluster, "labels": labels, "generateName": set.name}),
    };
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "ManifestWork",
        "metadata": metadata,
        "spec": *set.template,
    })
}

fn labels(set: &ReplicaSet, key: &str, placement: &str) -> Map<String, Json> {
    let mut labels = set.labels.clone();
    labels.insert(SET_LABEL.to_owned(), json!(key));
    labels.insert(PLACEMENT_LABEL.to_owned(), json!(placement));
    labels
}

/// Whether a work that is there has the template and labels of `set`: then [`patch`] has nothing.
/// It copies no template.
pub fn is_so(known: &Work, set: &ReplicaSet, key: &str, placement: &str) -> bool {
    known.is_current && labels(set, key, placement).iter().all(|(name, value)| known.labels.get(name) == Some(value))
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

/// The latest time of an entry that holds the spec. Kubernetes moves it when a value of the entry
/// changes.
fn written(object: &Json) -> Option<OffsetDateTime> {
    let entries = list(object, "/metadata/managedFields").iter();
    let of_spec = entries.filter(|entry| {
        text(entry, "/subresource").is_empty() && entry.pointer("/fieldsV1/f:spec").is_some_and(Json::is_object)
    });
    of_spec.filter_map(|entry| OffsetDateTime::parse(text(entry, "/time"), &Rfc3339).ok()).max()
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
            written: written(object),
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

    /// Whether its objects were on the member at its generation.
    pub fn was_applied(&self) -> bool {
        let applied = condition::find(&self.conditions, "Applied");
        applied.is_some_and(|one| one.status == Status::True && one.observed_generation == self.generation)
    }

    /// How far it is with the template.
    pub fn existing(&self) -> Existing<'_> {
        let (state, since) = rollout::state(self.generation, &self.conditions);
        Existing { cluster: &self.cluster, state, since }
    }

    pub(super) fn has_succeeded(&self) -> bool {
        self.existing().state == RolloutStatus::Succeeded
    }
}
