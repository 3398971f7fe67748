//! What a work does not want of a manifest: fields that only the API server sets, and text in
//! Secrets.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;

use crate::fields::{self, child, text};

/// Fields that only the API server sets, and the owners, which we set: a UID would be a
/// precondition on the existing object, and an owner that does not exist would delete it.
const NOT_WANTED: [&str; 7] =
    ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "ownerReferences"];

pub(super) fn cleaned(manifest: &Json, is_namespaced: bool) -> Json {
    let mut object = manifest.clone();
    if let Some(entries) = object.as_object_mut() {
        entries.remove("status");
    }
    if let Some(metadata) = fields::metadata(&mut object) {
        for field in NOT_WANTED {
            metadata.remove(field);
        }
        if !is_namespaced {
            metadata.remove("namespace");
        }
    }
    if (text(&object, "/apiVersion"), text(&object, "/kind")) == ("v1", "Secret") {
        fold(&mut object);
    }
    object
}

/// Converts a `Secret` as an API server does: `stringData` is only written, and never read again.
fn fold(secret: &mut Json) {
    let Some(entries) = secret.as_object_mut() else { return };
    let texts = entries.remove("stringData");
    if let Some(Json::Object(texts)) = texts
        && !texts.is_empty()
        && let Some(data) = child(entries, "data")
    {
        let encoded = texts.into_iter().map(|(key, value)| {
            let value = value.as_str().map_or(value.clone(), |text| STANDARD.encode(text).into());
            (key, value)
        });
        data.extend(encoded);
    }
    if entries.get("type").is_none_or(Json::is_null) {
        entries.insert("type".to_owned(), "Opaque".into());
    }
}
