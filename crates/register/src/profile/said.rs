//! Whether an object already says what would be applied.
//!
//! Server-side apply of unchanged content does not write, but it is still a request, for every
//! cluster at each observation. So the object from the watch is compared. It must have all fields
//! of the document. And of the fields that `managedFields` lists as ours, the document must have
//! all, because apply would remove the others.

use serde_json::Value;

use crate::fields::{field, list};

/// Fields that distinguish the items of lists that are maps.
const KEYS: [&str; 2] = ["type", "name"];

/// Whether applying `document` as `manager` to `subresource` (empty: the object) leaves `object`
/// unchanged.
pub fn is_said(object: &Value, document: &Value, manager: &str, subresource: &str) -> bool {
    let entries = list(object, "metadata.managedFields").unwrap_or_default();
    let ours = entries.iter().find(|entry| {
        entry["manager"] == manager
            && entry["operation"] == "Apply"
            && entry["subresource"].as_str().unwrap_or_default() == subresource
    });
    let Some(ours) = ours.and_then(|entry| field(entry, "fieldsV1")) else { return false };
    has(object, document) && is_covered(ours, document)
}

/// Whether `object` contains all of `document`.
fn has(object: &Value, document: &Value) -> bool {
    match (object, document) {
        (Value::Object(object), Value::Object(document)) => {
            document.iter().all(|(name, value)| object.get(name).is_some_and(|there| has(there, value)))
        }
        (Value::Array(there), Value::Array(wanted)) => wanted.iter().all(|item| {
            let same = |other: &&Value| key(other).is_some() && key(other) == key(item);
            there.iter().find(same).map_or_else(|| there.contains(item), |other| has(other, item))
        }),
        (there, wanted) => there == wanted,
    }
}

fn key(item: &Value) -> Option<&str> {
    KEYS.into_iter().find_map(|key| item.get(key)?.as_str())
}

/// Whether `document` has each of these fields (`FieldsV1` of structured-merge-diff).
fn is_covered(fields: &Value, document: &Value) -> bool {
    let Some(fields) = fields.as_object() else { return true };
    fields.iter().all(|(path, below)| match path.split_once(':') {
        Some(("f", name)) => document.get(name).is_some_and(|value| is_covered(below, value)),
        Some(("k", keys)) => {
            let Ok(Value::Object(keys)) = serde_json::from_str(keys) else { return false };
            let is_it = |item: &&Value| keys.iter().all(|(name, value)| item.get(name) == Some(value));
            let items = document.as_array().map(Vec::as_slice).unwrap_or_default();
            items.iter().find(is_it).is_some_and(|item| is_covered(below, item))
        }
        // The item or map itself.
        None if path == "." => true,
        // Sets and indices, which these documents do not have.
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MANAGER: &str = "m";

    /// An object as an API server returns it from an apply.
    fn object() -> Value {
        json!({
            "metadata": {"name": "c", "uid": "u", "labels": {"ours": "1", "theirs": "2"}, "managedFields": [
                {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": {"f:theirs": {}}}}},
                {"manager": MANAGER, "operation": "Apply", "fieldsV1":
                    {"f:metadata": {"f:labels": {"f:ours": {}}}, "f:spec": {"f:displayName": {}}}},
                {"manager": MANAGER, "operation": "Apply", "subresource": "status", "fieldsV1":
                    {"f:status": {"f:properties": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:value": {}}}}}},
            ]},
            "spec": {"displayName": "Berlin"},
            "status": {"properties": [{"name": "a", "value": "1"}, {"name": "theirs", "value": "9"}]},
        })
    }

    fn is_object_said(document: &Value) -> bool {
        is_said(&object(), document, MANAGER, "")
    }

    #[test]
    fn what_is_there_is_said_and_what_others_add_is_theirs() {
        let document = json!({"metadata": {"name": "c", "labels": {"ours": "1"}}, "spec": {"displayName": "Berlin"}});
        assert!(is_object_said(&document));
        let status = json!({"status": {"properties": [{"name": "a", "value": "1"}]}});
        assert!(is_said(&object(), &status, MANAGER, "status"));
    }

    #[test]
    fn what_is_new_other_or_left_out_is_not_said() {
        for document in [
            json!({"metadata": {"labels": {"ours": "1", "new": "1"}}, "spec": {"displayName": "Berlin"}}),
            json!({"metadata": {"labels": {"ours": "2"}}, "spec": {"displayName": "Berlin"}}),
            json!({"metadata": {"labels": {"ours": "1"}}}),
            json!({"metadata": {"labels": {}}, "spec": {"displayName": "Berlin"}}),
        ] {
            assert!(!is_object_said(&document), "{document}");
        }
        for properties in [
            json!([{"name": "a", "value": "2"}]),
            json!([{"name": "b", "value": "1"}]),
            json!([{"name": "a", "value": "1"}, {"name": "b", "value": "1"}]),
            json!([]),
        ] {
            let document = json!({"status": {"properties": properties}});
            assert!(!is_said(&object(), &document, MANAGER, "status"), "{document}");
        }
    }

    #[test]
    fn what_was_never_applied_is_not_said() {
        let document = json!({"spec": {"displayName": "Berlin"}});
        assert!(!is_said(&object(), &document, "another", ""));
        assert!(!is_said(&json!({"spec": {"displayName": "Berlin"}}), &document, MANAGER, ""));
    }
}
