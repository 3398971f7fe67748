//! The managers of an object's fields (`metadata.managedFields`).

use std::cell::Cell;

use serde_json::{Map, Value as Json};

use crate::fields::{list, text};

/// Most items of a list that are searched one by one.
const ITEMS: usize = 256;
/// Most comparisons of fields, and of items with keys, for an object: nested lists multiply, and
/// the member decides what they are. Beyond, nothing is clear.
const STEPS: usize = 200_000;
/// Fields of the metadata that are not applied.
const NOT_APPLIED: [&str; 3] = ["name", "namespace", "finalizers"];

/// Whether `manager` applied each field of `object`, according to `observed`. Where that is not
/// clear, it did not: another apply changes nothing then.
pub fn is_applied_by(manager: &str, object: &Json, observed: &Json) -> bool {
    let left = &Cell::new(STEPS);
    applied(manager, observed).any(|fields| {
        let all = object.as_object().into_iter().flatten();
        all.filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind")).all(|(key, value)| {
            let Some(fields) = fields.get(format!("f:{key}")) else { return key == "metadata" && is_bare(value) };
            let is_metadata = key == "metadata";
            if is_metadata { of_metadata(value).all(|one| has(one, fields, left)) } else { covers(value, fields, left) }
        })
    })
}

/// Whether `manager` applied an entry of a map of the metadata that `object` no longer has.
pub fn is_left_over(manager: &str, object: &Json, observed: &Json, map: &str) -> bool {
    let wanted = object.pointer(&format!("/metadata/{map}"));
    let mut all = applied(manager, observed).filter_map(|fields| fields.get("f:metadata")?.get(format!("f:{map}")));
    all.any(|entries| {
        let mut keys = entries.as_object().into_iter().flatten().filter_map(|(key, _)| key.strip_prefix("f:"));
        keys.any(|key| wanted.and_then(|wanted| wanted.get(key)).is_none())
    })
}

/// The fields that `manager` applied, in each version of the kind.
fn applied<'o>(manager: &'o str, observed: &'o Json) -> impl Iterator<Item = &'o Json> {
    let entries = list(observed, "/metadata/managedFields").iter();
    let of_manager = entries.filter(move |entry| {
        text(entry, "/manager") == manager
            && text(entry, "/operation") == "Apply"
            && text(entry, "/subresource").is_empty()
    });
    of_manager.filter_map(|entry| entry.get("fieldsV1"))
}

fn of_metadata(metadata: &Json) -> impl Iterator<Item = (&String, &Json)> {
    let all = metadata.as_object().into_iter().flatten();
    all.filter(|(key, _)| !NOT_APPLIED.contains(&key.as_str()))
}

fn is_bare(metadata: &Json) -> bool {
    of_metadata(metadata).all(|(_, value)| value.is_null())
}

/// Takes `steps` from those that are left; false if there are not enough.
fn may(left: &Cell<usize>, steps: usize) -> bool {
    let rest = left.get().checked_sub(steps);
    left.set(rest.unwrap_or_default());
    rest.is_some()
}

fn has((key, value): (&String, &Json), fields: &Json, left: &Cell<usize>) -> bool {
    value.is_null() || fields.get(format!("f:{key}")).is_some_and(|fields| covers(value, fields, left))
}

/// Whether `fields` have each part of a value. An entry without fields stands for the whole value.
fn covers(value: &Json, fields: &Json, left: &Cell<usize>) -> bool {
    let Some(all) = fields.as_object().filter(|_| may(left, 1)) else { return false };
    match value {
        _ if all.is_empty() => true,
        Json::Object(entries) => entries.iter().all(|one| has(one, fields, left)),
        Json::Array(items) => items.len() <= ITEMS && all.len() <= 2 * ITEMS && has_items(items, all, left),
        _ => true,
    }
}

/// Items are named by their value, or by their keys, some of which the member fills in.
fn has_items(items: &[Json], fields: &Map<String, Json>, left: &Cell<usize>) -> bool {
    // Parsing a key takes as long as a few comparisons.
    if !may(left, 8 * fields.len()) {
        return false;
    }
    let read = |key: &str, mark: &str| serde_json::from_str::<Json>(key.strip_prefix(mark)?).ok();
    let keyed: Vec<(Json, &Json)> =
        fields.iter().filter_map(|(key, fields)| Some((read(key, "k:")?, fields))).collect();
    let values: Vec<Json> = fields.keys().filter_map(|key| read(key, "v:")).collect();
    let is_named = |item: &Json, keys: &Json| {
        // An empty set of keys would name every item.
        let keys = keys.as_object().filter(|keys| !keys.is_empty() && may(left, keys.len()));
        keys.is_some_and(|keys| keys.iter().all(|(key, value)| item.get(key).is_none_or(|own| own == value)))
    };
    items.iter().all(|item| {
        may(left, values.len()) && values.contains(item)
            || keyed.iter().any(|(keys, fields)| is_named(item, keys) && covers(item, fields, left))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn observed(manager: &str, fields: &Json) -> Json {
        let entry = json!({"manager": manager, "operation": "Apply", "fieldsV1": fields});
        json!({"metadata": {"managedFields": [{"manager": manager, "operation": "Update", "fieldsV1": {}}, entry]}})
    }

    fn service() -> Json {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "n", "labels": {"a": "b"}},
            "spec": {"ports": [{"port": 80, "name": "web"}], "selector": {"app": "a"}, "externalIPs": ["10.0.0.1"],
                "x": null}})
    }

    fn fields() -> Json {
        json!({"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {
            "f:ports": {".": {}, "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}}},
            "f:selector": {}, "f:externalIPs": {".": {}, "v:\"10.0.0.1\"": {}}}})
    }

    #[test]
    fn all_fields_have_to_be_ours() {
        assert!(is_applied_by("m", &service(), &observed("m", &fields())));
        assert!(!is_applied_by("m", &service(), &observed("other", &fields())));
        let without = |pointer: &str, key: &str| {
            let mut fields = fields();
            fields.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(key).unwrap();
            is_applied_by("m", &service(), &observed("m", &fields))
        };
        let port = "/f:spec/f:ports/k:{\"port\":80,\"protocol\":\"TCP\"}";
        assert!(!without("/f:metadata", "f:labels") && !without("", "f:metadata"));
        assert!(!without("/f:spec", "f:selector") && !without(port, "f:name"));
        for (pointer, value) in [("/spec/ports/0/port", json!(81)), ("/spec/externalIPs/0", json!("10.0.0.2"))] {
            let mut other = service();
            *other.pointer_mut(pointer).unwrap() = value;
            assert!(!is_applied_by("m", &other, &observed("m", &fields())), "{pointer}");
        }
        let bare = json!({"metadata": {"name": "a", "finalizers": ["x"]}, "data": {"a": "b"}});
        assert!(is_applied_by("m", &bare, &observed("m", &json!({"f:data": {"f:a": {}}}))));
    }

    #[test]
    fn long_lists_are_not_gone_through() {
        let is_applied = |count: usize| {
            let items: Vec<Json> = (0..count).map(|number| json!({"name": number.to_string()})).collect();
            let keys = (0..count).map(|number| (format!("k:{{\"name\":\"{number}\"}}"), json!({})));
            let fields = json!({"f:items": keys.collect::<Map<_, _>>()});
            is_applied_by("m", &json!({"items": items}), &observed("m", &fields))
        };
        assert!(is_applied(ITEMS) && !is_applied(ITEMS + 1));
    }

    /// As many as a member may make of them, each of which matches up to its end.
    #[test]
    fn lists_in_lists_do_not_multiply() {
        // Keys with more spaces sort first.
        let keys = |last: Json, others: Json| -> Json {
            let key = |count: usize| format!("k:{{{}\"a\":1}}", " ".repeat(count));
            (0..200)
                .map(|count| (key(count), if count == 0 { &last } else { &others }.clone()))
                .collect::<Map<_, _>>()
                .into()
        };
        let mut inner = vec![json!({"a": 1}); ITEMS];
        inner[ITEMS - 1] = json!({"a": 1, "b": 2});
        let items = json!(vec![json!({"a": 1, "inner": inner}); ITEMS]);
        let fields = json!({"f:a": {}, "f:inner": keys(json!({"f:a": {}}), json!({"f:z": {}}))});
        let left = Cell::new(STEPS);
        assert!(!covers(&items, &keys(fields.clone(), fields), &left) && left.get() == 0, "{left:?} steps are left");
        assert!(!is_applied_by("m", &json!({"items": [{"a": 1}]}), &observed("m", &json!({"f:items": {"k:{}": {}}}))));
    }

    #[test]
    fn what_the_manifest_dropped_is_left_over() {
        let observed = observed("m", &fields());
        let mut object = service();
        assert!(!is_left_over("m", &object, &observed, "labels"));
        object["metadata"]["labels"] = json!({});
        assert!(is_left_over("m", &object, &observed, "labels") && !is_left_over("o", &object, &observed, "labels"));
        assert!(!is_left_over("m", &object, &observed, "annotations"));
    }
}
