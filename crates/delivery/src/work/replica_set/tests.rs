use serde_json::{Value as Json, json};
use time::OffsetDateTime;

use super::*;
use crate::condition::find;
use crate::rollout::RolloutStatus;

fn now() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_772_366_400).unwrap()
}

fn template(data: &str) -> Json {
    json!({"workload": {"manifests": [{"kind": "ConfigMap", "data": {"a": data}}]}})
}

fn set() -> ReplicaSet {
    ReplicaSet::from(json!({"metadata": {"namespace": "team", "name": "app", "labels": {"own": "x"}},
        "spec": {"manifestWorkTemplate": template("1"), "cascadeDeletionPolicy": "Foreground",
            "placementRefs": [{"name": "p", "rolloutStrategy": {"type": "All"}}]}}))
}

fn on_hub(cluster: &str, data: &str, conditions: &[(&str, &str)]) -> Work {
    let conditions: Vec<Json> = conditions
        .iter()
        .map(|(kind, status)| json!({"type": kind, "status": status, "observedGeneration": 2, "lastTransitionTime": "2026-03-01T11:00:00Z"}))
        .collect();
    let spec = template(data);
    let is_current = !differing(&spec, &set().template);
    Work::read(
        &json!({"metadata": {"namespace": cluster, "name": format!("app-{cluster}"), "generation": 2, "uid": "u",
        "resourceVersion": "7",
        "labels": {SET_LABEL: "team.app", PLACEMENT_LABEL: "p", "own": "x"}},
        "status": {"conditions": conditions}}),
        Arc::new(spec),
        is_current,
    )
}

fn reasons(status: &SetStatus) -> [String; 3] {
    ["PlacementVerified", "PlacementRolledOut", "ManifestworkApplied"]
        .map(|kind| find(&status.conditions, kind).map(|one| one.reason.clone()).unwrap_or_default())
}

fn rollout(selected: usize, existing: usize) -> PlacementRollout<'static> {
    PlacementRollout { name: "p", selected, groups: 1, existing, error: None }
}

#[test]
fn a_work_has_the_labels_of_its_set() {
    let set = set();
    let made = work(&set, &set.key().unwrap(), "p", "c1", Name::MadeUp);
    let labels = json!({"own": "x", SET_LABEL: "team.app", PLACEMENT_LABEL: "p"});
    assert_eq!(made["metadata"], json!({"namespace": "c1", "generateName": "app", "labels": labels}));
    assert_eq!(made["spec"], template("1"));
    let named = work(&set, "team.app", "p", "c1", Name::Known("known"));
    assert_eq!((&named["metadata"]["name"], named["metadata"].get("generateName")), (&json!("known"), None));
    assert!(set.waits_for_works && set.placements[0].rollout_strategy.kind == "All");
}

#[test]
fn a_work_has_one_name_whoever_creates_it() {
    let only = |set: &ReplicaSet, placement: &str, cluster: &str| {
        let made = work(set, "team.app", placement, cluster, Name::Only);
        assert_eq!(made["metadata"]["generateName"], set.name, "as upstream's have it");
        made["metadata"]["name"].as_str().unwrap().to_owned()
    };
    let set = set();
    let known = only(&set, "p", "c1");
    assert_eq!(known, "applzdjl", "another version of this program makes the same");
    assert_eq!(only(&ReplicaSet { template: Arc::new(template("2")), ..self::set() }, "p", "c1"), known);
    let others = [
        only(&set, "q", "c1"),
        only(&set, "p", "c2"),
        only(&ReplicaSet { namespace: "blue".into(), ..self::set() }, "p", "c1"),
    ];
    assert!(!others.contains(&known), "{others:?}");
    let long = ReplicaSet { name: "n".repeat(61), ..self::set() };
    assert_eq!(name(&long, "p", "c1").len(), 63, "what the hub would make of it");
}

#[test]
fn what_is_so_needs_no_copy_of_the_template() {
    let set = set();
    let mut known = on_hub("c1", "1", &[]);
    assert!(is_so(&known, &set, "team.app", "p") && !is_so(&known, &set, "team.app", "q"));
    assert!(!is_so(&on_hub("c1", "0", &[]), &set, "team.app", "p"));
    known.labels.insert("own".into(), json!("y"));
    assert!(!is_so(&known, &set, "team.app", "p"));
}

#[test]
fn when_a_work_was_written_is_read_from_whoever_has_its_spec() {
    let entry = |time: &str, fields: Json, subresource: &str| json!({"manager": "m", "time": time, "fieldsV1": fields, "subresource": subresource});
    let spec = json!({"f:spec": {}});
    let fields = json!([
        entry("2026-03-01T10:00:00Z", spec.clone(), ""),
        entry("2026-03-01T11:00:00Z", spec.clone(), ""),
        entry("2026-03-01T11:30:00Z", json!({"f:metadata": {}}), ""),
        entry("2026-03-01T11:40:00Z", spec, "status"),
        {}
    ]);
    let read = |fields: Json| Work::read(&json!({"metadata": {"managedFields": fields}}), Arc::default(), true).written;
    assert_eq!(read(fields), Some(now() - time::Duration::HOUR));
    assert_eq!(read(json!(null)), None);
}

#[test]
fn a_name_that_makes_no_label_is_told() {
    let long = ReplicaSet { name: "n".repeat(60), ..set() };
    let why = long.key().unwrap_err();
    assert!(
        why.starts_with("ManifestWork owner reference \"team.nnn") && why.ends_with("at most 63 characters"),
        "{why}"
    );
    let status = invalid_name(&long, &why, now());
    assert_eq!(reasons(&status)[2], "InvalidManifestWorkName");
    assert_eq!(ReplicaSet { name: "n".repeat(58), ..set() }.key().map(|key| key.len()), Ok(63));
}

#[test]
fn only_what_differs_is_patched() {
    let set = set();
    let wanted = work(&set, "team.app", "p", "c1", Name::Known("app-c1"));
    let mut known = on_hub("c1", "1", &[]);
    assert_eq!(patch(&known, &wanted), None);
    known.labels.insert("others".into(), json!("y"));
    assert_eq!(patch(&known, &wanted), None);
    let spec = Arc::make_mut(&mut known.spec);
    spec["executor"] = json!({"subject": {}});
    spec["workload"]["manifests"][0]["data"]["a"] = json!("0");
    let found = patch(&known, &wanted).unwrap();
    assert_eq!(
        found,
        json!({"metadata": {"uid": "u", "resourceVersion": "7", "labels": wanted["metadata"]["labels"]}, "spec": {"executor": null, "workload": template("1")["workload"]}})
    );
    let mut same = on_hub("c1", "1", &[]);
    let spec = Arc::make_mut(&mut same.spec);
    spec["workload"]["manifests"][0]["metadata"] = json!({"creationTimestamp": null});
    spec["manifestConfigs"] = json!(null);
    assert_eq!(patch(&same, &wanted), None);
    let policy = |selector: Json| json!({"workload": {"manifests": [{"spec": {"namespaceSelector": selector}}]}});
    assert!(differing(&policy(json!({})), &policy(Json::Null)));
}

#[test]
fn only_works_with_the_template_have_a_state() {
    let done = on_hub("c1", "1", &[("Applied", "True"), ("Progressing", "False")]);
    assert!(done.is_current && !on_hub("c1", "0", &[]).is_current);
    let existing = done.existing();
    assert_eq!((existing.cluster, existing.state), ("c1", RolloutStatus::Succeeded));
    assert_eq!(existing.since, Some(now() - time::Duration::HOUR));
    assert_eq!(on_hub("c1", "1", &[("Applied", "True")]).existing().state, RolloutStatus::ToApply);
}

#[test]
fn the_status_counts_works_and_says_how_far_they_are() {
    let set = set();
    let done =
        |cluster: &str| on_hub(cluster, "1", &[("Applied", "True"), ("Available", "True"), ("Progressing", "False")]);
    let found = status(&set, &[rollout(2, 2)], &[&done("c1"), &done("c2")], now());
    assert_eq!(reasons(&found), ["AsExpected", "Complete", "AsExpected"]);
    let counts = Summary { total: 2, applied: 2, available: 2, ..Summary::default() };
    assert_eq!((found.summary, found.placement_summary[0].summary), (counts, counts));
    assert_eq!(found.placement_summary[0].available_decision_groups, "1 (2 / 2 clusters applied)");

    let busy = on_hub("c2", "1", &[("Applied", "True"), ("Progressing", "True")]);
    let found = status(&set, &[rollout(2, 2)], &[&done("c1"), &busy], now());
    assert_eq!(reasons(&found), ["AsExpected", "Progressing", "Processing"]);
    let failed = on_hub("c2", "1", &[("Applied", "True"), ("Progressing", "True"), ("Degraded", "True")]);
    let found = status(&set, &[rollout(2, 2)], &[&done("c1"), &failed], now());
    assert_eq!((reasons(&found)[2].as_str(), found.summary.degraded), ("NotAsExpected", 1));
    // Of another template, of another Placement, and ending: none of these counts.
    let others = [on_hub("c2", "0", &[("Applied", "True")]), Work { is_ending: true, ..busy }];
    assert_eq!(
        status(&set, &[rollout(2, 1)], &[&others[0], &others[1]], now()).summary,
        Summary { total: 1, ..Summary::default() }
    );
}

#[test]
fn nothing_chosen_is_told() {
    let found = status(&set(), &[rollout(0, 0)], &[], now());
    assert_eq!(reasons(&found), ["PlacementDecisionEmpty", "Complete", "PlacementDecisionEmpty"]);
    let found = not_found(&set(), now());
    assert_eq!(reasons(&found)[0], "PlacementDecisionNotFound");
    let broken = PlacementRollout { error: Some("maxConcurrency: x"), ..rollout(0, 0) };
    let found = status(&set(), &[broken], &[], now());
    assert_eq!(reasons(&found), ["NotAsExpected", "Progressing", "NotAsExpected"]);
    assert_eq!(found.conditions[0].message, "maxConcurrency: x");
}

#[test]
fn placements_that_cannot_be_read_are_not_none() {
    let group = json!({"type": "Progressive", "progressive": {"mandatoryDecisionGroups": [{"groupIndex": -1}]}});
    let set = ReplicaSet::from(json!({"metadata": {"namespace": "team", "name": "app"},
        "spec": {"placementRefs": [{"name": "p", "rolloutStrategy": group}]}}));
    let why = set.unreadable.clone().unwrap_or_default();
    assert!(set.placements.is_empty() && why.starts_with("placementRefs: "), "{why}");
    let found = unreadable(&set, &why, now());
    assert_eq!((reasons(&found)[0].as_str(), found.conditions[0].message.as_str()), ("NotAsExpected", why.as_str()));
    let none = ReplicaSet::from(json!({"metadata": {"namespace": "team", "name": "app"}, "spec": {}}));
    assert_eq!((none.placements.len(), none.unreadable), (0, None));
    // Otherwise its works would be deleted, or get that text as their template.
    for spec in [json!("cannot be read"), json!({"placementRefs": [], "manifestWorkTemplate": "cannot be read"})] {
        let set = ReplicaSet::from(json!({"metadata": {"namespace": "team", "name": "app"}, "spec": spec}));
        assert_eq!(set.unreadable.as_deref(), Some("cannot be read"));
    }
}

#[test]
fn a_rule_of_the_template_may_say_how_far_a_work_is() {
    let with = |kind: &str, condition: &str| {
        let rule = json!({"type": kind, "condition": condition});
        let template = json!({"manifestConfigs": [{"conditionRules": [rule]}]});
        ReplicaSet { template: Arc::new(template), ..set() }.has_progressing_rule()
    };
    assert!(with("CEL", "Progressing") && !with("CEL", "Complete") && !with("WellKnownConditions", "Progressing"));
    assert!(!set().has_progressing_rule());
}
