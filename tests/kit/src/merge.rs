//! JSON merge patches, as API servers take them.

use serde_json::{Value, json};

/// Merges a patch (RFC 7396).
pub fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().map(|fields| fields.remove(&key));
        } else {
            merge(&mut target[key.as_str()], value);
        }
    }
}
