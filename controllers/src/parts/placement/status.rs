//! The status of a Placement, as upstream writes it.
//!
//! In addition, each condition has an `observedGeneration`, which upstream's lack. That of
//! `PlacementSatisfied` records which generation the decisions follow, also for the next leader:
//! the condition stays as it is while the Placement cannot be evaluated.

use api::conditions;
use placement::conditions::{Condition, SATISFIED, decided_generation};
use placement::slices::GroupStatus;
use serde_json::{Value, json};

use crate::calls::MANAGER;

const MISCONFIGURED: &str = "PlacementMisconfigured";
/// Fields that only a scheduler writes.
const COUNTS: [&str; 2] = ["numberOfSelectedClusters", "decisionGroups"];

/// The result of a run.
pub struct Report<'a> {
    pub generation: i64,
    pub conditions: &'a [Condition],
    /// The number of decided clusters, and their groups; none if the decisions are kept.
    pub decided: Option<(usize, Vec<GroupStatus<'a>>)>,
}

/// Whether `status` has the same values as `other` in our fields and conditions, as far as `other`
/// has them. Other writers may have conditions of their own.
pub fn has_ours(status: &Value, other: &Value) -> bool {
    let counts = COUNTS.iter().filter(|name| !other[**name].is_null()).all(|name| status[*name] == other[*name]);
    let is_same = |of: &&str| find(status, of) == find(other, of);
    counts && [SATISFIED, MISCONFIGURED].iter().filter(|of| find(other, of).is_some()).all(is_same)
}

/// The last other manager that wrote one of our fields (`metadata.managedFields`).
pub fn writer(metadata: &Value) -> Option<&str> {
    let entries = metadata["managedFields"].as_array()?.iter();
    let is_of_ours = |entry: &&Value| {
        let fields = &entry["fieldsV1"]["f:status"];
        let is_there = |name: &str| !fields[format!("f:{name}")].is_null();
        is_there("conditions") || COUNTS.iter().any(|name| is_there(name))
    };
    let others = entries.filter(is_of_ours).filter(|entry| entry["manager"] != MANAGER);
    // Times are in RFC 3339 and UTC, so their text sorts by time.
    others.max_by_key(|entry| entry["time"].as_str().unwrap_or_default())?["manager"].as_str()
}

/// The status fields that differ from `before`, at `now` (RFC 3339); none if all are equal.
pub fn difference(before: &Value, report: &Report<'_>, now: &str) -> Option<Value> {
    let mut after = json!({"conditions": all_conditions(before, report, now)});
    if let Some((clusters, groups)) = &report.decided {
        after["numberOfSelectedClusters"] = (*clusters).into();
        after["decisionGroups"] = groups.iter().map(group).collect();
    }
    let is_same = after.as_object().is_some_and(|fields| fields.iter().all(|(name, value)| before[name] == *value));
    (!is_same).then_some(after)
}

fn group(group: &GroupStatus<'_>) -> Value {
    json!({
        "decisionGroupIndex": group.index,
        "decisionGroupName": group.name,
        "decisions": group.decisions,
        "clusterCount": group.cluster_count,
    })
}

fn all_conditions(before: &Value, report: &Report<'_>, now: &str) -> Value {
    let mut all = before["conditions"].as_array().cloned().unwrap_or_default();
    for condition in report.conditions {
        let is_kept = report.decided.is_none() && condition.kind == SATISFIED;
        if is_kept && decided_generation(before).is_some() {
            continue;
        }
        let mut document = json!({
            "type": condition.kind,
            "status": if condition.is_true { "True" } else { "False" },
            "reason": condition.reason,
            "message": condition.message,
        });
        if !is_kept {
            document["observedGeneration"] = report.generation.into();
        }
        conditions::set(&mut all, document, now);
    }
    all.into()
}

fn find<'a>(status: &'a Value, of: &str) -> Option<&'a Value> {
    conditions::find(&status["conditions"], of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(is_misconfigured: bool) -> [Condition; 2] {
        let condition = |kind, is_true| Condition { kind, is_true, reason: "R", message: "m".into() };
        [condition("PlacementMisconfigured", is_misconfigured), condition(SATISFIED, !is_misconfigured)]
    }

    fn decided() -> (usize, Vec<GroupStatus<'static>>) {
        let decisions = vec!["p-decision-1".to_owned()];
        (2, vec![GroupStatus { index: 0, name: "", decisions, cluster_count: 2 }])
    }

    #[test]
    fn what_is_so_is_not_written_again() {
        let report = Report { generation: 3, conditions: &conditions(false), decided: Some(decided()) };
        let status = difference(&Value::Null, &report, "2026-01-01T00:00:00Z").unwrap();
        assert_eq!(status["numberOfSelectedClusters"], 2);
        assert_eq!(status["decisionGroups"][0]["decisions"][0], "p-decision-1");
        assert_eq!(decided_generation(&status), Some(3));
        assert_eq!(difference(&status, &report, "2026-01-02T00:00:00Z"), None);
    }

    #[test]
    fn who_wrote_what_is_ours() {
        let entry = |manager: &str, time: &str, field: &str| json!({"manager": manager, "time": time, "fieldsV1": {"f:status": {field: {}}}});
        let metadata = json!({"managedFields": [entry(MANAGER, "3", "f:decisionGroups"),
            entry("adder", "1", "f:conditions"), entry("kubectl-edit", "2", "f:numberOfSelectedClusters"),
            entry("other", "4", "f:else")]});
        assert_eq!(writer(&metadata), Some("kubectl-edit"), "the last of them");
        let report = Report { generation: 3, conditions: &conditions(false), decided: Some(decided()) };
        let ours = difference(&Value::Null, &report, "1").unwrap();
        let mut more = ours.clone();
        more["conditions"].as_array_mut().unwrap().push(json!({"type": "Theirs"}));
        assert!(has_ours(&more, &ours) && has_ours(&ours, &more), "a condition of theirs");
        more["conditions"][0]["message"] = "else".into();
        assert!(!has_ours(&more, &ours));
        assert!(!has_ours(&json!({}), &ours) && has_ours(&ours, &json!({"conditions": []})));
    }

    #[test]
    fn times_move_when_the_status_of_a_condition_does() {
        let report = |generation| Report { generation, conditions: &[], decided: Some(decided()) };
        let (good, bad) = (conditions(false), conditions(true));
        let first = difference(&Value::Null, &Report { conditions: &good, ..report(1) }, "1").unwrap();
        let second = difference(&first, &Report { conditions: &good, ..report(2) }, "2").unwrap();
        assert_eq!(second["conditions"][0]["lastTransitionTime"], "1");
        let third = difference(&second, &Report { conditions: &bad, ..report(2) }, "3").unwrap();
        assert_eq!(third["conditions"][0]["lastTransitionTime"], "3");
    }

    #[test]
    fn kept_decisions_keep_what_was_said_of_them() {
        let good = Report { generation: 3, conditions: &conditions(false), decided: Some(decided()) };
        let before = difference(&Value::Null, &good, "1").unwrap();
        let bad = Report { generation: 4, conditions: &conditions(true), decided: None };
        let after = difference(&before, &bad, "2").unwrap();
        assert_eq!(after["conditions"][1], before["conditions"][1]);
        assert_eq!((&after["conditions"][0]["status"], after.get("decisionGroups")), (&json!("True"), None));
        // It is unknown which generation another client's decisions follow.
        let foreign = difference(&Value::Null, &bad, "2").unwrap();
        assert_eq!(decided_generation(&foreign), None);
        assert_eq!(difference(&foreign, &bad, "3"), None, "nor is that written again");
    }
}
