//! The patch that makes a work as it should be.

use serde_json::{Map, Value as Json, json};

use super::Work;
use crate::metadata::without_empty_creation;
use crate::strategy::alike;

/// Whether two specs of works differ. Null values, the creation times that Go writes in templates,
/// and metadata that contains nothing else make no difference.
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

/// A JSON merge patch that makes an existing work the `wanted` of [`work`](super::work). The hub
/// refuses it if the work was replaced or has changed. None if nothing differs. Labels of others
/// stay.
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

/// The merge patch (RFC 7386) that turns `before` into `after`.
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
