//! The status of a `ManagedCluster` about its member: `cluster.open-cluster-management.io/v1`, as
//! the klusterlet writes it.

use std::collections::BTreeMap;

use api::conditions;
use serde_json::{Value, json};

pub const JOINED: &str = "ManagedClusterJoined";
pub const AVAILABLE: &str = "ManagedClusterConditionAvailable";
/// Limit of a condition's message in bytes (`maxLength` of `metav1.Condition`: 32,768; less is
/// enough).
const LONGEST_MESSAGE: usize = 1_024;

/// The known facts about the member. `None` is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Why its API server is not available; empty if it is.
    pub unavailable: Option<String>,
    /// Such as `v1.35.4`.
    pub version: Option<String>,
    /// Quantities of all nodes together.
    pub resources: Option<Resources>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resources {
    pub capacity: BTreeMap<String, String>,
    pub allocatable: BTreeMap<String, String>,
}

/// The patch that makes `cluster` report `facts` at `now` (RFC 3339), or none if it already does.
pub fn patch(cluster: &Value, facts: &Facts, now: &str) -> Option<Value> {
    let before = &cluster["status"];
    let mut status = json!({});
    let conditions = all_conditions(&before["conditions"], facts, now);
    if Value::from(conditions.clone()) != before["conditions"] {
        status["conditions"] = conditions.into();
    }
    if let Some(version) = &facts.version
        && before["version"]["kubernetes"] != version.as_str()
    {
        status["version"] = json!({"kubernetes": version});
    }
    if let Some(Resources { capacity, allocatable }) = &facts.resources {
        for (field, told) in [("capacity", json!(capacity)), ("allocatable", json!(allocatable))] {
            if before[field] != told {
                status[field] = told;
            }
        }
    }
    if status == json!({}) {
        return None;
    }
    // A list is replaced as a whole, so the patch holds only if no other writer came in between.
    Some(json!({"metadata": {"resourceVersion": cluster["metadata"]["resourceVersion"]}, "status": status}))
}

fn all_conditions(before: &Value, facts: &Facts, now: &str) -> Vec<Value> {
    let mut all = before.as_array().cloned().unwrap_or_default();
    set(&mut all, JOINED, true, "ManagedClusterJoined", "Managed cluster joined", now);
    match facts.unavailable.as_deref() {
        None => {}
        Some("") => set(&mut all, AVAILABLE, true, "ManagedClusterAvailable", "Managed cluster is available", now),
        Some(why) => {
            let why: String = why.chars().take(LONGEST_MESSAGE).collect();
            set(&mut all, AVAILABLE, false, "ManagedClusterKubeAPIServerUnavailable", &why, now);
        }
    }
    all
}

/// Time and message change only with the status or the reason: an unchanged condition causes no
/// write.
fn set(all: &mut Vec<Value>, kind: &str, is_true: bool, reason: &str, message: &str, now: &str) {
    let status = if is_true { "True" } else { "False" };
    let is_told = |known: &Value| known["type"] == kind && known["status"] == status && known["reason"] == reason;
    if !all.iter().any(is_told) {
        conditions::set(all, json!({"type": kind, "status": status, "reason": reason, "message": message}), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-01T00:00:00Z";

    fn facts(unavailable: &str) -> Facts {
        Facts { unavailable: Some(unavailable.to_owned()), version: Some("v1.35.4".to_owned()), resources: None }
    }

    #[test]
    fn what_is_said_already_is_not_said_again() {
        let accepted = json!({"type": "HubAcceptedManagedCluster", "status": "True", "reason": "x"});
        let mut cluster = json!({"metadata": {"resourceVersion": "7"}, "status": {"conditions": [accepted]}});
        let told = patch(&cluster, &facts(""), NOW).unwrap();
        assert_eq!(told["metadata"]["resourceVersion"], "7");
        let conditions = told["status"]["conditions"].as_array().unwrap();
        assert_eq!(conditions[0], accepted, "another's");
        let kinds: Vec<_> = conditions[1..].iter().map(|one| one["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, [JOINED, AVAILABLE]);
        cluster["status"] = told["status"].clone();
        assert_eq!(patch(&cluster, &facts(""), "2026-01-02T00:00:00Z"), None);
        let down = patch(&cluster, &facts("no route"), "2026-01-02T00:00:00Z").unwrap();
        let told = &down["status"]["conditions"][2];
        assert_eq!((&told["status"], &told["message"]), (&json!("False"), &json!("no route")));
        assert_eq!(told["lastTransitionTime"], "2026-01-02T00:00:00Z");
        assert_eq!(down["status"]["conditions"][1]["lastTransitionTime"], NOW);
        assert!(down["status"].get("version").is_none());
        cluster["status"] = down["status"].clone();
        cluster["status"]["version"] = json!({"kubernetes": "v1.35.4"});
        assert_eq!(patch(&cluster, &facts("other words"), NOW), None, "the same reason");
    }
}
