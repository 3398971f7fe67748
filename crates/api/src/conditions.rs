//! Lists of conditions in a `status` (`metav1.Condition`), as JSON.

use serde_json::Value;

/// The condition of this type. `list` may be null.
pub fn find<'a>(list: &'a Value, kind: &str) -> Option<&'a Value> {
    list.as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// Since when a condition has `status`: the time in `known` if its status is the same, else `now`.
pub fn since<'a>(known: Option<&'a Value>, status: &Value, now: &'a str) -> &'a str {
    let known = known.filter(|known| known["status"] == *status);
    known.and_then(|known| known["lastTransitionTime"].as_str()).unwrap_or(now)
}

/// Puts `new` (`type`, `status`, `reason`, `message`, and further fields) in the place of the
/// condition of its type, or at the end. `lastTransitionTime` becomes `now` (RFC 3339) if the
/// status changed or there was none. Otherwise it stays, and so do fields that `new` lacks, because
/// another writer owns them. The same as apimachinery's `meta.SetStatusCondition`.
pub fn set(list: &mut Vec<Value>, mut new: Value, now: &str) {
    let known = list.iter_mut().find(|condition| condition["type"] == new["type"]);
    new["lastTransitionTime"] = since(known.as_deref(), &new["status"], now).into();
    match known {
        None => list.push(new),
        Some(known) if known["status"] != new["status"] => *known = new,
        Some(known) => {
            for (field, value) in new.as_object().into_iter().flatten() {
                known[field.as_str()] = value.clone();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_time_is_that_of_the_last_change_of_the_status() {
        let ready = |status: &str, message: &str| json!({"type": "Ready", "status": status, "message": message});
        let mut list = vec![json!({"type": "Other", "status": "True"})];
        set(&mut list, ready("True", "a"), "1");
        set(&mut list, ready("True", "b"), "2");
        assert_eq!((&list[1]["message"], &list[1]["lastTransitionTime"]), (&json!("b"), &json!("1")));
        set(&mut list, ready("False", "b"), "3");
        assert_eq!(find(&json!(list), "Ready").unwrap()["lastTransitionTime"], "3");
        assert_eq!((list.len(), &list[0]), (2, &json!({"type": "Other", "status": "True"})), "others stay");
    }

    #[test]
    fn what_somebody_else_says_of_the_same_status_stays() {
        let mut list = vec![json!({"type": "Ready", "status": "True", "observedGeneration": 3})];
        set(&mut list, json!({"type": "Ready", "status": "True", "reason": "R"}), "1");
        let told = json!({"type": "Ready", "status": "True", "observedGeneration": 3, "reason": "R",
            "lastTransitionTime": "1"});
        assert_eq!(list, [told], "a time that is missing is set");
    }
}
