//! Merges the wanted metadata into the existing.

use std::collections::HashSet;

use serde_json::{Map, Value as Json};

use crate::fields::{self, child, texts};

/// The maps that are merged: entries of others stay.
const MERGED: [&str; 2] = ["labels", "annotations"];

/// Labels and annotations as they should be: the existing ones, overridden and extended by the
/// wanted ones. A wanted key that ends in `-` removes the key before it, even if that is wanted
/// too.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// Labels, then annotations.
    maps: [Map<String, Json>; 2],
    pub is_changed: bool,
}

pub fn merged(wanted: &Json, observed: &Json) -> Merged {
    let mut is_changed = false;
    let maps = MERGED.map(|name| {
        let pointer = format!("/metadata/{name}");
        let mut map: Map<String, Json> =
            texts(observed, &pointer).map(|(key, value)| (key.to_owned(), value.into())).collect();
        let gone: HashSet<&str> = texts(wanted, &pointer).filter_map(|(key, _)| removed(key)).collect();
        for (key, value) in texts(wanted, &pointer) {
            is_changed |= match removed(key) {
                Some(key) => map.remove(key).is_some(),
                None if gone.contains(key) => false,
                None => map.insert(key.to_owned(), value.into()).as_ref().and_then(Json::as_str) != Some(value),
            };
        }
        map
    });
    Merged { maps, is_changed }
}

/// The key that `key` removes, if it ends in `-`.
fn removed(key: &str) -> Option<&str> {
    key.ends_with('-').then(|| key.trim_end_matches('-'))
}

/// Drops the keys that would remove others, and these others.
pub fn clean(object: &mut Json) {
    for name in MERGED {
        let map = object.pointer_mut(&format!("/metadata/{name}")).and_then(Json::as_object_mut);
        if let Some(map) = map {
            let gone: HashSet<String> = map.keys().filter_map(|key| removed(key)).map(str::to_owned).collect();
            map.retain(|key, _| removed(key).is_none() && !gone.contains(key));
        }
    }
}

/// Removes the empty creation times that Go writes in templates: an API server takes each for a
/// change (kubernetes/kubernetes#67610).
pub fn without_empty_creation(value: &mut Json) {
    match value {
        Json::Object(entries) => {
            if let Some(Json::Object(metadata)) = entries.get_mut("metadata")
                && metadata.get("creationTimestamp").is_some_and(Json::is_null)
            {
                metadata.remove("creationTimestamp");
            }
            entries.values_mut().for_each(without_empty_creation);
        }
        Json::Array(values) => values.iter_mut().for_each(without_empty_creation),
        _ => {}
    }
}

// === impl Merged ===

impl Merged {
    /// Sets these on `object`.
    pub fn put(self, object: &mut Json) {
        let Some(metadata) = fields::metadata(object) else { return };
        for (name, map) in MERGED.into_iter().zip(self.maps) {
            if map.is_empty() {
                metadata.remove(name);
            } else if let Some(known) = child(metadata, name) {
                *known = map;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wanted_is_joined_with_what_is_there() {
        let observed =
            json!({"metadata": {"labels": {"a": "1", "theirs": "x", "old": "y"}, "annotations": {"n": "1"}}});
        let wanted = json!({"metadata": {"labels": {"a": "2", "b": "3", "old-": "", "never-": ""}}});
        let found = merged(&wanted, &observed);
        assert!(found.is_changed);
        let mut object = json!({"kind": "X"});
        found.put(&mut object);
        assert_eq!(
            object["metadata"],
            json!({"labels": {"a": "2", "b": "3", "theirs": "x"}, "annotations": {"n": "1"}})
        );
        assert!(!merged(&wanted, &object).is_changed);
        assert!(!merged(&json!({}), &observed).is_changed);
        let taken = json!({"metadata": {"labels": {"old-": ""}}});
        assert!(merged(&taken, &observed).is_changed && !merged(&taken, &object).is_changed);
    }

    #[test]
    fn what_takes_away_is_not_created() {
        let mut object = json!({"metadata": {"labels": {"a": "1", "b-": ""}, "annotations": {"c-": "", "c": "1"}}});
        clean(&mut object);
        assert_eq!(object, json!({"metadata": {"labels": {"a": "1"}, "annotations": {}}}));
    }

    #[test]
    fn empty_times_of_creation_go_wherever_they_are() {
        let template = |metadata: Json| json!({"metadata": metadata, "spec": {"template": {"metadata": metadata}}});
        let mut object = json!({"spec": {"jobs": [template(json!({"creationTimestamp": null, "name": "a"}))]}});
        without_empty_creation(&mut object);
        assert_eq!(object, json!({"spec": {"jobs": [template(json!({"name": "a"}))]}}));
    }
}
