//! Whether an object is in the wanted state.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value as Json;

/// What is known of an object from before.
///
/// A member fills in what a manifest leaves out. A mere comparison would never find such an object
/// in the wanted state, and would write it each time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Known {
    #[default]
    Nothing,
    /// This manifest was applied as it is, maybe by another process. What the object has besides is
    /// then the member's.
    Applied,
    /// The API server's last answer to this manifest. What the object has besides is drift.
    Answered(AnswerHashes),
}

/// A manifest and what an API server made of it, as hashes within a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerHashes {
    wanted: u64,
    observed: u64,
}

// === impl AnswerHashes ===

impl AnswerHashes {
    /// Keep this after a request that wrote `wanted` and whose answer is `observed`.
    pub fn of(wanted: &Json, observed: &Json) -> Self {
        Self { wanted: hash(wanted), observed: hash(observed) }
    }
}

/// Whether `observed` is in the wanted state, apart from metadata and status. `wanted` is the
/// `manifest` with the fields that are carried over.
pub fn is_same(wanted: &Json, observed: &Json, known: Known, manifest: &Json) -> bool {
    let is_within = known == Known::Applied && is_all_within(wanted, observed);
    is_within || was_seen(manifest, observed, known) || is_equal(wanted, observed)
}

/// Whether `observed` is known to be the result of the manifest.
pub fn was_seen(manifest: &Json, observed: &Json, known: Known) -> bool {
    match known {
        Known::Nothing => false,
        Known::Applied => is_all_within(manifest, observed),
        Known::Answered(before) => before == AnswerHashes::of(manifest, observed),
    }
}

/// Whether `manifest` was written last, and `observed` still has all of it: anything else was
/// changed by others.
pub fn still_has(manifest: &Json, observed: &Json, known: Known) -> bool {
    matches!(known, Known::Answered(before) if before.wanted == hash(manifest)) && is_all_within(manifest, observed)
}

fn is_all_within(wanted: &Json, observed: &Json) -> bool {
    entries(wanted).all(|(key, value)| is_within(value, observed.get(key)))
}

/// The fields of an object that are compared. Its kind is that of the path at which it was read;
/// items of lists have none.
fn entries(object: &Json) -> impl Iterator<Item = (&String, &Json)> {
    let all = object.as_object().into_iter().flatten();
    all.filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status"))
}

/// Null equals a missing value. An empty value does not: an empty selector of a `NetworkPolicy`
/// selects everything, a missing one nothing.
fn is_equal(a: &Json, b: &Json) -> bool {
    entries(a).all(|(key, value)| alike(value, b.get(key))) && entries(b).all(|(key, value)| alike(value, a.get(key)))
}

/// Whether two values mean the same, where null equals a missing value.
pub fn alike(a: &Json, b: Option<&Json>) -> bool {
    let Some(b) = b else { return a.is_null() };
    match (a, b) {
        (Json::Object(one), Json::Object(other)) => {
            one.iter().all(|(key, value)| alike(value, other.get(key)))
                && other.iter().all(|(key, value)| one.contains_key(key) || value.is_null())
        }
        (Json::Array(one), Json::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| alike(a, Some(b)))
        }
        (Json::Number(one), Json::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        _ => a == b,
    }
}

/// Whether each part of `a` is in `b`. Lists must have the same length: an item is not found by a
/// name.
fn is_within(a: &Json, b: Option<&Json>) -> bool {
    let Some(b) = b else { return a.is_null() };
    match (a, b) {
        (Json::Object(one), Json::Object(_)) => one.iter().all(|(key, value)| is_within(value, b.get(key))),
        (Json::Array(one), Json::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| is_within(a, Some(b)))
        }
        _ => alike(a, Some(b)),
    }
}

fn hash(object: &Json) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (key, value) in entries(object) {
        key.hash(&mut hasher);
        value.hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn same(wanted: &Json, observed: &Json, known: Known) -> bool {
        is_same(wanted, observed, known, wanted)
    }

    #[test]
    fn metadata_status_and_null_make_no_difference() {
        let wanted = json!({"metadata": {"name": "a"}, "spec": {"a": 1, "l": [], "n": null}});
        let observed = json!({"metadata": {"name": "b"}, "spec": {"a": 1.0, "l": [], "x": null}, "status": {"b": 1}});
        assert!(same(&wanted, &observed, Known::Nothing) && same(&observed, &wanted, Known::Nothing));
        let with = |key: &str, value: Json| {
            let mut other = observed.clone();
            other["spec"][key] = value;
            other
        };
        for other in [with("a", json!(2)), with("b", json!(2)), with("l", json!([1])), with("l", Json::Null)] {
            assert!(!same(&wanted, &other, Known::Nothing), "{other}");
        }
        assert!(!same(&json!({"l": [1, 2]}), &json!({"l": [2, 1]}), Known::Nothing));
    }

    #[test]
    fn an_empty_selector_is_not_a_missing_one() {
        let everyone = json!({"spec": {"ingress": [{"from": [{"namespaceSelector": {}, "podSelector": {"a": "b"}}]}]}});
        let own = json!({"spec": {"ingress": [{"from": [{"podSelector": {"a": "b"}}]}]}});
        for known in [Known::Nothing, Known::Applied] {
            assert!(!same(&everyone, &own, known), "{known:?}");
        }
        assert!(!same(&own, &everyone, Known::Nothing));
    }

    #[test]
    fn what_the_member_fills_in_is_let_be_once_it_was_applied() {
        let wanted = json!({"spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}});
        let filled =
            json!({"spec": {"ports": [{"port": 80, "protocol": "TCP"}], "selector": {"a": "b"}, "type": "ClusterIP"}});
        assert!(!same(&wanted, &filled, Known::Nothing));
        assert!(same(&wanted, &filled, Known::Applied));
        let mut drifted = filled.clone();
        drifted["spec"]["ports"][0]["port"] = json!(81);
        assert!(!same(&wanted, &drifted, Known::Applied));
        let mut longer = filled.clone();
        longer["spec"]["ports"] = json!([{"port": 80}, {"port": 81}]);
        assert!(!same(&wanted, &longer, Known::Applied));
    }

    #[test]
    fn after_an_answer_anything_else_is_drift() {
        let wanted = json!({"spec": {"a": 1}});
        let answer = json!({"spec": {"a": 1, "filled": 2}, "metadata": {"resourceVersion": "1"}});
        let known = Known::Answered(AnswerHashes::of(&wanted, &answer));
        let mut moved = answer.clone();
        moved["metadata"] = json!({"resourceVersion": "2"});
        moved["status"] = json!({"phase": "x"});
        assert!(same(&wanted, &moved, known));
        moved["spec"]["added"] = json!(1);
        assert!(!same(&wanted, &moved, known) && same(&wanted, &moved, Known::Applied));
        assert!(!same(&json!({"spec": {"a": 1, "filled": 3}}), &answer, known), "another manifest");
    }
}
