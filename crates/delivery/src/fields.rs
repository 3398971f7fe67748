//! Reads fields of objects as the API server sends them: a missing field is empty. Also: which
//! parts of an object statuses may show.

use std::borrow::Cow;

use serde_json::{Map, Value as Json};

/// Bytes of a text that weigh as much as a value.
pub const STRIDE: usize = 64;
/// `kubectl apply` keeps the whole object in this annotation, with its data.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Fields of a `Secret` that are not secret.
const OPEN: [&str; 5] = ["apiVersion", "kind", "type", "metadata", "status"];

pub fn text<'j>(object: &'j Json, pointer: &str) -> &'j str {
    object.pointer(pointer).and_then(Json::as_str).unwrap_or_default()
}

pub fn list<'j>(object: &'j Json, pointer: &str) -> &'j [Json] {
    object.pointer(pointer).and_then(Json::as_array).map_or(&[], Vec::as_slice)
}

/// The entries of a map whose values are texts: labels, annotations.
pub fn texts<'j>(object: &'j Json, pointer: &str) -> impl Iterator<Item = (&'j str, &'j str)> {
    let entries = object.pointer(pointer).and_then(Json::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

/// The object's `metadata`, created if it is missing.
pub fn metadata(object: &mut Json) -> Option<&mut Map<String, Json>> {
    child(object.as_object_mut()?, "metadata")
}

/// The map at `key`, created if it is missing or something else.
pub fn child<'m>(parent: &'m mut Map<String, Json>, key: &str) -> Option<&'m mut Map<String, Json>> {
    let value = parent.entry(key).or_insert_with(|| Json::Object(Map::new()));
    if !value.is_object() {
        *value = Json::Object(Map::new());
    }
    value.as_object_mut()
}

/// Whether the object is being deleted.
pub fn is_ending(object: &Json) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

/// Whether lists and maps are nested more than `levels` deep.
pub fn is_deeper(value: &Json, levels: usize) -> bool {
    let Some(inner) = levels.checked_sub(1) else { return value.is_array() || value.is_object() };
    match value {
        Json::Array(values) => values.iter().any(|value| is_deeper(value, inner)),
        Json::Object(entries) => entries.values().any(|value| is_deeper(value, inner)),
        _ => false,
    }
}

/// The cost of walking through a value: its values, with keys and texts weighed by their length.
pub fn weight(value: &Json) -> usize {
    match value {
        Json::Array(values) => values.iter().fold(1, |sum, value| sum + weight(value)),
        Json::Object(entries) => entries.iter().fold(1, |sum, (key, value)| sum + key.len() / STRIDE + weight(value)),
        Json::String(text) => 1 + text.len() / STRIDE,
        _ => 1,
    }
}

/// Splits `apiVersion` into group and version.
pub fn group_and_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// The object; a `Secret` without its data. Many users read statuses who may not read the member's
/// Secrets.
pub fn visible(object: &Json) -> Cow<'_, Json> {
    if (text(object, "/apiVersion"), text(object, "/kind")) != ("v1", "Secret") {
        return Cow::Borrowed(object);
    }
    let fields = OPEN.iter().filter_map(|name| Some(((*name).to_owned(), object.get(name)?.clone())));
    let mut open = Json::Object(fields.collect::<Map<_, _>>());
    if let Some(Json::Object(annotations)) = open.pointer_mut("/metadata/annotations") {
        annotations.remove(LAST_APPLIED);
    }
    Cow::Owned(open)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn levels_are_counted_and_no_stack_is_needed_beyond_them() {
        assert!(!is_deeper(&json!(1), 0) && is_deeper(&json!([]), 0) && !is_deeper(&json!([]), 1));
        assert!(is_deeper(&json!({"a": [{"b": 1}]}), 2) && !is_deeper(&json!({"a": [{"b": 1}]}), 3));
    }

    #[test]
    fn values_and_long_texts_weigh() {
        assert_eq!(weight(&json!({"a": [1, null], "b": "x".repeat(2 * STRIDE)})), 7);
    }

    #[test]
    fn what_is_missing_is_empty() {
        let mut object = json!({"metadata": {"labels": {"a": "b", "c": 1}}});
        assert_eq!(text(&object, "/metadata/name"), "");
        assert_eq!(texts(&object, "/metadata/labels").collect::<Vec<_>>(), [("a", "b")]);
        assert_eq!(list(&object, "/spec/x"), &[] as &[Json]);
        child(metadata(&mut object).unwrap(), "annotations").unwrap().insert("x".into(), json!("y"));
        assert_eq!(text(&object, "/metadata/annotations/x"), "y");
        assert_eq!((group_and_version("apps/v1"), group_and_version("v1")), (("apps", "v1"), ("", "v1")));
    }

    #[test]
    fn the_data_of_secrets_is_not_visible() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"a": "b"},
            "metadata": {"name": "n", "annotations": {LAST_APPLIED: "{\"data\": {}}", "a": "b"}}});
        let open = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "n", "annotations": {"a": "b"}}});
        assert_eq!(*visible(&secret), open);
        let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}});
        assert_eq!(*visible(&other), other);
    }
}
