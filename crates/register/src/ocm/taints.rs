//! Taints that the hub sets by a cluster's availability, and the times of all taints.

use serde_json::{Value, json};

use super::condition::{self, AVAILABLE};
use crate::fields::field;

/// For a missing condition, or `Unknown`.
pub const UNREACHABLE: &str = "cluster.open-cluster-management.io/unreachable";
/// For `False`.
pub const UNAVAILABLE: &str = "cluster.open-cluster-management.io/unavailable";
const EFFECT: &str = "NoSelect";

/// The taints that `cluster` must have at `now` (RFC 3339); none if it has them.
///
/// It never has both of the hub's taints, nor one with a value, which tolerations without a value
/// would not fit. Other taints stay; those without a time get the time at which they were first
/// seen.
pub fn corrected(cluster: &Value, now: &str) -> Option<Vec<Value>> {
    let before = field(cluster, "spec.taints").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let wanted = match condition::status(cluster, AVAILABLE) {
        Some("True") => None,
        Some("False") => Some(UNAVAILABLE),
        _ => Some(UNREACHABLE),
    };
    let is_kept = |taint: &&Value| {
        let key = taint["key"].as_str();
        let is_plain = taint["effect"] == EFFECT && taint["value"].as_str().is_none_or(str::is_empty);
        (key != Some(UNREACHABLE) && key != Some(UNAVAILABLE)) || key == wanted && is_plain
    };
    let mut after: Vec<Value> = before.iter().filter(is_kept).cloned().collect();
    if let Some(key) = wanted
        && !after.iter().any(|taint| taint["key"] == key)
    {
        after.push(json!({"key": key, "effect": EFFECT}));
    }
    for taint in &mut after {
        if taint["timeAdded"].is_null() {
            taint["timeAdded"] = now.into();
        }
    }
    (after != before).then_some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(available: Option<&str>, taints: &Value) -> Value {
        let conditions: Vec<_> = available.iter().map(|status| json!({"type": AVAILABLE, "status": status})).collect();
        json!({"spec": {"taints": taints}, "status": {"conditions": conditions}})
    }

    fn hub(key: &str, time: &str) -> Value {
        json!({"key": key, "effect": EFFECT, "timeAdded": time})
    }

    #[test]
    fn one_of_the_hubs_by_availability_and_never_both() {
        let both = json!([hub(UNREACHABLE, "t0"), hub(UNAVAILABLE, "t0")]);
        for (available, taints, after) in [
            (None, json!([]), Some(json!([hub(UNREACHABLE, "t1")]))),
            (Some("Unknown"), json!([]), Some(json!([hub(UNREACHABLE, "t1")]))),
            (Some("False"), both.clone(), Some(json!([hub(UNAVAILABLE, "t0")]))),
            (Some("Unknown"), both.clone(), Some(json!([hub(UNREACHABLE, "t0")]))),
            (Some("True"), both, Some(json!([]))),
            (Some("True"), json!([]), None),
            (Some("False"), json!([hub(UNAVAILABLE, "t0")]), None),
            (
                Some("False"),
                json!([{"key": UNAVAILABLE, "effect": "PreferNoSelect", "timeAdded": "t0"}]),
                Some(json!([hub(UNAVAILABLE, "t1")])),
            ),
            (
                Some("False"),
                json!([{"key": UNAVAILABLE, "value": "x", "effect": EFFECT, "timeAdded": "t0"}]),
                Some(json!([hub(UNAVAILABLE, "t1")])),
            ),
            (Some("False"), json!([{"key": UNAVAILABLE, "value": "", "effect": EFFECT, "timeAdded": "t0"}]), None),
        ] {
            let found = corrected(&cluster(available, &taints), "t1").map(Value::from);
            assert_eq!(found, after, "{available:?} {taints}");
        }
    }

    #[test]
    fn those_of_others_get_a_time_and_nothing_else() {
        let taints = json!([{"key": "gpu", "value": "a", "effect": "PreferNoSelect"}, hub("zone", "t0")]);
        let after = corrected(&cluster(Some("True"), &taints), "t1").unwrap();
        assert_eq!(
            after,
            [json!({"key": "gpu", "value": "a", "effect": "PreferNoSelect", "timeAdded": "t1"}), hub("zone", "t0")]
        );
        assert_eq!(corrected(&cluster(Some("True"), &after.into()), "t2"), None);
    }
}
