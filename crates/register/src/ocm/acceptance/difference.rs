//! What differs between an object on the hub and the wanted one.

use serde_json::Value;

use super::Wanted;

/// How an existing object differs from its wanted content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    Nothing,
    /// In mutable fields.
    Fields,
    /// In immutable fields, or the object is being deleted: delete it first.
    Whole,
}

/// Compares only the fields written here. Other labels, finalizers and owners belong to others.
pub fn difference(existing: &Value, wanted: &Wanted) -> Difference {
    let document = &wanted.document;
    let is_leaving = !existing["metadata"]["deletionTimestamp"].is_null();
    if is_leaving || !document["roleRef"].is_null() && existing["roleRef"] != document["roleRef"] {
        return Difference::Whole;
    }
    let is_same = |field: &str| document[field].is_null() || existing[field] == document[field];
    let has_all = |field: &str| {
        let mut wanted = document["metadata"][field].as_array().into_iter().flatten();
        let existing = existing["metadata"][field].as_array().map_or(&[][..], Vec::as_slice);
        wanted.all(|item| existing.iter().any(|other| is_item(other, item)))
    };
    let mut labels = document["metadata"]["labels"].as_object().into_iter().flatten();
    let has_labels = labels.all(|(key, value)| existing["metadata"]["labels"].get(key) == Some(value));
    if has_labels && has_all("finalizers") && has_all("ownerReferences") && is_same("rules") && is_same("subjects") {
        Difference::Nothing
    } else {
        Difference::Fields
    }
}

fn is_item(existing: &Value, wanted: &Value) -> bool {
    existing == wanted || !wanted["uid"].is_null() && existing["uid"] == wanted["uid"]
}
