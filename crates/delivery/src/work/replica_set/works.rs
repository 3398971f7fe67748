//! The works of a set.

mod patch;

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::{Map, Value as Json, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{PLACEMENT_LABEL, ReplicaSet, SET_LABEL};
use crate::condition::{self, Condition, Status};
use crate::fields::{self, is_ending, list, text};
use crate::rollout::{self, Existing, RolloutStatus};
use crate::work::GROUP;

pub use self::patch::{differing, patch};

/// A work as it is on the hub.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// Its namespace.
    pub cluster: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub generation: i64,
    /// When it was created, in RFC 3339 and UTC: such texts sort by time.
    pub created: String,
    /// When its spec was last written, by any writer (`metadata.managedFields`); none if unknown.
    pub written: Option<OffsetDateTime>,
    pub is_ending: bool,
    pub labels: Map<String, Json>,
    /// Works of one set may share it.
    pub spec: Arc<Json>,
    /// Whether that is its set's template, by [`differing`]. Only then does it have a state.
    pub is_current: bool,
    pub conditions: Vec<Condition>,
}

/// The name of a work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name<'n> {
    /// That of an existing work.
    Known(&'n str),
    /// That of [`name`]: the hub refuses a second one.
    Only,
    /// The hub generates it, as it does for upstream.
    MadeUp,
}

/// Length and alphabet of the suffix that Kubernetes appends to a `generateName`, and the longest
/// name to which it appends it (`k8s.io/apiserver/pkg/storage/names`).
const SUFFIX: usize = 5;
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const STEM: usize = 58;

/// The name of the work of a set for a cluster, by one of its Placements. It looks like one that
/// the hub generates from the set's, and is always the same: if two processes create it, the hub
/// refuses one.
pub fn name(set: &ReplicaSet, placement: &str, cluster: &str) -> String {
    // None of these contains a slash.
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

/// Whether an existing work has the template and labels of `set`, so that [`patch`] has nothing. It
/// copies no template.
pub fn is_so(known: &Work, set: &ReplicaSet, key: &str, placement: &str) -> bool {
    known.is_current && labels(set, key, placement).iter().all(|(name, value)| known.labels.get(name) == Some(value))
}

/// The latest time of an entry that has the spec. Kubernetes moves it when a value of the entry
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
    /// Reads all but its spec, which other works of its set may share.
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

    /// The set's Placement for which it is.
    pub fn placement(&self) -> &str {
        self.labels.get(PLACEMENT_LABEL).and_then(Json::as_str).unwrap_or_default()
    }

    /// Whether its objects were applied on the member at its generation.
    pub fn was_applied(&self) -> bool {
        let applied = condition::find(&self.conditions, "Applied");
        applied.is_some_and(|one| one.status == Status::True && one.observed_generation == self.generation)
    }

    /// Its progress with the template.
    pub fn existing(&self) -> Existing<'_> {
        let (state, since) = rollout::state(self.generation, &self.conditions);
        Existing { cluster: &self.cluster, state, since }
    }

    pub(super) fn has_succeeded(&self) -> bool {
        self.existing().state == RolloutStatus::Succeeded
    }
}
