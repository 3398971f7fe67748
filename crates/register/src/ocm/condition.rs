//! Conditions of a `ManagedCluster`, as upstream's hub controllers write them.

use api::conditions;
use serde_json::{Value, json};

use crate::fields::field;

/// Whether the hub accepts the cluster.
pub const HUB_ACCEPTED: &str = "HubAcceptedManagedCluster";
/// Whether the cluster's API server is available, according to its agent; the hub reports an agent
/// that fell silent.
pub const AVAILABLE: &str = "ManagedClusterConditionAvailable";
/// The reason of that condition's `Unknown` while an agent is silent.
pub const LEASE_UPDATE_STOPPED: &str = "ManagedClusterLeaseUpdateStopped";
pub const CLOCK_SYNCED: &str = "ManagedClusterConditionClockSynced";
/// An agent connected with the cluster's certificate; the agent reports it.
pub const JOINED: &str = "ManagedClusterJoined";

/// For a set: whether it has no clusters.
pub const EMPTY: &str = "ClusterSetEmpty";
/// For a set's binding: whether the set exists.
pub const BOUND: &str = "Bound";

/// The wanted content of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub of: &'static str,
    pub status: &'static str,
    pub reason: &'static str,
    pub message: String,
}

/// The condition of type `of`, if the object has it.
pub fn find<'a>(object: &'a Value, of: &str) -> Option<&'a Value> {
    conditions::find(field(object, "status.conditions")?, of)
}

/// Its status: `True`, `False` or `Unknown`; none if the condition is missing.
pub fn status<'a>(object: &'a Value, of: &str) -> Option<&'a str> {
    find(object, of)?["status"].as_str()
}

/// All conditions of an object after `changes` at `now` (RFC 3339); none if they change nothing.
///
/// A merge patch replaces the whole list, so the writer names the version that the list was
/// computed from.
pub fn changed(object: &Value, changes: &[Condition], now: &str) -> Option<Vec<Value>> {
    let before = field(object, "status.conditions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut after = before.to_vec();
    for change in changes {
        conditions::set(&mut after, change.document(), now);
    }
    (after != before).then_some(after)
}

// === impl Condition ===

impl Condition {
    /// An administrator accepted the cluster, and everything that acceptance grants exists.
    pub fn accepted() -> Self {
        Self::new(HUB_ACCEPTED, "True", "HubClusterAdminAccepted", "Accepted by hub cluster admin".to_owned())
    }

    /// An administrator denied the cluster after an acceptance.
    pub fn denied() -> Self {
        Self::new(HUB_ACCEPTED, "False", "HubClusterAdminDenied", "Denied by hub cluster admin".to_owned())
    }

    /// An administrator accepted the cluster, but the acceptance could not be carried out.
    pub fn failed(why: String) -> Self {
        Self::new(HUB_ACCEPTED, "False", "Error", why)
    }

    /// The agent is silent.
    pub fn silent() -> Self {
        let message = "Registration agent stopped updating its lease.".to_owned();
        Self::new(AVAILABLE, "Unknown", LEASE_UPDATE_STOPPED, message)
    }

    /// Whether the cluster is available, according to its member's answers.
    pub(super) fn available(status: &'static str, reason: &'static str, message: String) -> Self {
        Self::new(AVAILABLE, status, reason, message)
    }

    pub fn clock(is_synced: bool) -> Self {
        if is_synced {
            let message = "The clock of the managed cluster is synced with the hub.";
            return Self::new(CLOCK_SYNCED, "True", "ManagedClusterClockSynced", message.to_owned());
        }
        let message = "The clock of hub and agent is out of sync. This may cause the Unknown status and affect agent \
            functionalities.";
        Self::new(CLOCK_SYNCED, "False", "ManagedClusterClockOutOfSync", message.to_owned())
    }

    /// The number of clusters in a set.
    pub fn empty(count: usize) -> Self {
        if count == 0 {
            return Self::new(EMPTY, "True", "NoClusterMatched", "No ManagedCluster selected".to_owned());
        }
        Self::new(EMPTY, "False", "ClustersSelected", format!("{count} ManagedClusters selected"))
    }

    /// Whether the set that a binding names exists.
    pub fn bound(is_there: bool) -> Self {
        if is_there {
            return Self::new(BOUND, "True", "ClusterSetBound", String::new());
        }
        Self::new(BOUND, "False", "ClusterSetNotFound", "there is no such ManagedClusterSet: create it".to_owned())
    }

    fn new(of: &'static str, status: &'static str, reason: &'static str, message: String) -> Self {
        Self { of, status, reason, message }
    }

    fn document(&self) -> Value {
        let Self { of, status, reason, message } = self;
        json!({"type": of, "status": status, "reason": reason, "message": message})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(conditions: &Value) -> Value {
        json!({"status": {"conditions": conditions}})
    }

    #[test]
    fn a_condition_that_says_the_same_is_no_change() {
        let first = changed(&json!({}), &[Condition::accepted()], "t1").unwrap();
        assert_eq!(first[0]["lastTransitionTime"], "t1");
        assert_eq!(changed(&cluster(&first.into()), &[Condition::accepted()], "t2"), None);
    }

    #[test]
    fn the_time_moves_with_the_status_only_and_others_stay() {
        let before = json!([
            {"type": JOINED, "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "t0"},
            {"type": HUB_ACCEPTED, "status": "False", "reason": "HubClusterAdminDenied", "message": "x",
                "lastTransitionTime": "t1", "observedGeneration": 3},
        ]);
        let failed = changed(&cluster(&before), &[Condition::failed("no namespace".into())], "t2").unwrap();
        assert_eq!(failed[0], before[0]);
        assert_eq!((&failed[1]["reason"], &failed[1]["lastTransitionTime"]), (&json!("Error"), &json!("t1")));
        assert_eq!(failed[1]["observedGeneration"], 3);
        let accepted = changed(&cluster(&before), &[Condition::accepted()], "t2").unwrap();
        assert_eq!((accepted.len(), &accepted[1]["lastTransitionTime"]), (2, &json!("t2")));
    }
}
