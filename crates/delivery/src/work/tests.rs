use proptest::prelude::*;
use proptest::strategy::Strategy as _;
use serde_json::{Map, Value as Json, json};
use time::OffsetDateTime;

use super::*;
use crate::condition::{Condition, Status, find};
use crate::executor::Executor;
use crate::feedback::{Feedback, Value};
use crate::identity::{Identity, Tracked};
use crate::rules::{Evaluator, INVALID, INVALID_RULE};
use crate::strategy::{IgnoreError, Refusal, Strategy, When};

fn at(seconds: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_772_366_400 + seconds).unwrap()
}

fn identity(name: &str) -> Identity {
    Identity { resource: "configmaps".into(), name: name.into(), namespace: "n".into(), ..Identity::default() }
}

fn manifest(name: &str, conditions: Vec<Condition>) -> ManifestCondition {
    let resource_meta = ResourceMeta { resource: "configmaps".into(), name: name.into(), ..ResourceMeta::default() };
    ManifestCondition { resource_meta, conditions, ..ManifestCondition::default() }
}

#[test]
fn wildcards_stand_for_anything() {
    for (pattern, text, fits) in [
        ("a*a", "a", false),
        ("a*a", "aa", true),
        ("*", "", true),
        ("", "", true),
        ("", "a", false),
        ("a*b*c", "a-b-b-c", true),
        ("*b*", "abc", true),
        ("a.c", "abc", false),
        ("**", "x", true),
        ("a*", "ba", false),
    ] {
        assert_eq!(options::matches(pattern, text), fits, "{pattern} {text}");
    }
    let long = format!("{}b", "*a".repeat(200));
    assert!(!options::matches(&long, &"a".repeat(5000)));
}

#[test]
fn a_spec_is_what_it_says() {
    let spec: ManifestWorkSpec = serde_json::from_value(json!({
        "workload": {"manifests": [{"kind": "x"}]},
        "manifestConfigs": [{"resourceIdentifier": {"resource": "configmaps", "name": "*", "namespace": "n"},
            "updateStrategy": {"type": "ServerSideApply", "serverSideApply": {"force": true, "fieldManager": "work-agent-1",
                "ignoreFields": [{"condition": "OnSpokeChange", "jsonPaths": [".a.b"]}]}},
            "feedbackRules": [{"type": "WellKnownStatus"}, {"type": "Other"}],
            "conditionRules": [{"type": "CEL", "condition": "X", "celExpressions": ["true"]}]}],
        "executor": {"subject": {"type": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "sa"}}},
    }))
    .unwrap();
    let found = options(&identity("a"), &spec.manifest_configs);
    let Ok(Strategy::ServerSideApply(config)) = found.update_strategy.unwrap().strategy() else {
        panic!("no strategy")
    };
    assert!(config.force && config.manager == "work-agent-1" && config.ignore[0].when == When::Changed);
    let known: Vec<_> = found.feedback_rules.iter().map(|rule| rule.rule().is_some()).collect();
    assert_eq!((known, found.condition_rules.len()), (vec![true, false], 1));
    let executor = spec.executor.unwrap().executor();
    assert_eq!(executor, Ok(Executor { namespace: "n".into(), name: "sa".into() }));
    let odd = UpdateStrategy { kind: "Merge".into(), ..UpdateStrategy::default() };
    assert_eq!(odd.strategy(), Err(InvalidSpec::Kind("Merge".into())));
    assert_eq!(ManifestWorkExecutor::default().executor(), Err(InvalidSpec::Executor));
}

#[test]
fn reasons_of_applied_are_upstreams() {
    let one = applied(Ok(()), 3);
    assert_eq!(
        (one.status, one.reason.as_str(), one.observed_generation),
        (Status::True, "AppliedManifestComplete", 3)
    );
    let refusal = Refusal::Ignore(IgnoreError::Identity);
    let two = applied(Err(&Failed::from(&refusal)), 3);
    assert_eq!(two.reason, "AppliedManifestSSAIgnoreFieldError");
    assert!(two.message.starts_with("Failed to process ignoreFields: "), "{}", two.message);
    let three = applied(Err(&Failed::from(&Refusal::FieldManager("x".into()))), 3);
    assert!(
        three.reason == "AppliedManifestFailed" && three.message.starts_with("Failed to apply manifest: fieldManager")
    );
    let all = |conditions: Vec<Condition>| {
        let manifests: Vec<_> = conditions.into_iter().map(|one| manifest("a", vec![one])).collect();
        all_applied(&manifests, 4).map(|one| (one.status, one.reason))
    };
    assert_eq!(all(vec![]), None);
    assert_eq!(all(vec![one.clone(), one.clone()]), Some((Status::True, "AppliedManifestWorkComplete".into())));
    assert_eq!(all(vec![one, two]), Some((Status::False, "AppliedManifestWorkFailed".into())));
}

#[test]
fn what_was_applied_is_known_wherever_it_stood() {
    let mut one = manifest("a", vec![applied(Ok(()), 3)]);
    one.resource_meta.ordinal = 4;
    let all = [manifest("b", vec![Condition::new("Complete", Status::True, "R", "")]), one];
    let index = Index::new(&all);
    let found = index.find(&manifest("a", vec![]).resource_meta).unwrap();
    assert!(was_applied(found, 3) && !was_applied(found, 4) && !is_complete(&found.conditions));
    assert!(is_complete(&all[0].conditions) && !was_applied(&all[0], 0));
    assert_eq!(index.find(&manifest("c", vec![]).resource_meta), None);
}

#[test]
fn values_that_change_move_the_time_of_their_condition() {
    let mut one = manifest("a", vec![]);
    let told = |value| Some(Feedback { values: vec![("v".into(), Value::Integer(value))], errors: vec![] });
    let time = |one: &ManifestCondition| find(&one.conditions, kind::FEEDBACK).unwrap().last_transition_time.unwrap();
    feedback(&mut one, told(1), at(0));
    feedback(&mut one, told(1), at(5));
    assert_eq!(time(&one), at(0));
    feedback(&mut one, told(2), at(9));
    assert_eq!(time(&one), at(9));
    let written = serde_json::to_value(&one.status_feedback).unwrap();
    assert_eq!(written, json!({"values": [{"name": "v", "fieldValue": {"type": "Integer", "integer": 2}}]}));
    feedback(&mut one, None, at(12));
    assert_eq!(find(&one.conditions, kind::FEEDBACK).unwrap().reason, "NoStatusFeedbackSynced");
    let errors = |errors: &[&str]| {
        let errors = errors.iter().map(|error| (*error).to_owned()).collect();
        synced(Some(&Feedback { values: vec![], errors })).message
    };
    assert_eq!(errors(&["a"]), "Sync status feedback failed with error a");
    assert_eq!(errors(&["a", "b", "a"]), "Sync status feedback failed with error [a, b]");
}

#[test]
fn a_status_has_a_size() {
    let told = |number: usize| {
        let mut one = manifest(&format!("m{number}"), vec![Condition::new("X", Status::True, "R", "é".repeat(20_000))]);
        let values = (0..8).map(|at| (format!("v{at}"), Value::String("x".repeat(10_000)))).collect();
        feedback(&mut one, Some(Feedback { values, errors: vec![] }), at(0));
        one
    };
    let mut all: Vec<_> = (0..40).map(told).collect();
    let fit = |all: &mut [ManifestCondition], seconds| {
        let mut room = BytesLeft::default();
        for one in all {
            room.fit(one, at(seconds));
        }
    };
    fit(&mut all, 0);
    let size = serde_json::to_string(&all).unwrap().len();
    assert!((TOLD..3 * TOLD).contains(&size), "{size}");
    let synced = |one: &ManifestCondition| find(&one.conditions, kind::FEEDBACK).unwrap().reason.clone();
    assert_eq!((synced(&all[0]), all[0].status_feedback.values.len()), ("StatusFeedbackSynced".into(), 8));
    assert_eq!((synced(&all[39]), all[39].status_feedback.values.len()), ("StatusFeedbackSyncFailed".into(), 0));
    let before = all.clone();
    fit(&mut all, 60);
    assert_eq!(all, before, "the same is told again");
}

#[test]
fn a_work_is_available_as_its_objects_are() {
    let of = |states: &[Availability]| {
        let manifests: Vec<_> = states.iter().map(|state| manifest("a", vec![available(state)])).collect();
        let found = aggregate(&manifests, 2);
        assert_eq!((found.len(), found[0].observed_generation), (1, 2));
        (found[0].status, found[0].reason.clone(), found[0].message.clone())
    };
    assert_eq!(
        of(&[Availability::Available]),
        (Status::True, "ResourcesAvailable".into(), "All resources are available".into())
    );
    let missing = (Status::False, "ResourcesNotAvailable".into(), "1 of 3 resources are not available".into());
    assert_eq!(of(&[Availability::Available, Availability::NotFound, Availability::Unknown("x".into())]), missing);
    let unknown = (Status::Unknown, "ResourcesStatusUnknown".into(), "1 of 2 resources have unknown status".into());
    assert_eq!(of(&[Availability::Available, Availability::Incomplete]), unknown);
    assert_eq!(of(&[]).2, "cannot get any available resource ");
}

#[test]
fn conditions_of_rules_are_gathered_by_type() {
    let ruled = |kind: &str, status, message: &str| Condition::new(kind, status, "ConditionRuleEvaluated", message);
    let of = |kind: &str, statuses: &[Status]| {
        let manifests: Vec<_> = statuses.iter().map(|one| manifest("a", vec![ruled(kind, *one, "own")])).collect();
        let found = aggregate(&manifests, 1);
        let one = find(&found, kind).unwrap();
        assert_eq!(one.reason, "ConditionRulesAggregated");
        (one.status, one.message.clone())
    };
    assert_eq!(of("Complete", &[Status::True]), (Status::True, "own".into()));
    assert_eq!(
        of("Complete", &[Status::True, Status::False]),
        (Status::False, "Aggregated from 2 manifest conditions".into())
    );
    assert_eq!(of("Complete", &[Status::True, Status::Unknown]).0, Status::Unknown);
    assert_eq!(of("Progressing", &[Status::True, Status::False]).0, Status::True);
    assert_eq!(of("Progressing", &[Status::Unknown, Status::False]).0, Status::Unknown);
    assert_eq!(of("Progressing", &[Status::False]).0, Status::False);
    let mut conditions =
        vec![ruled("Old", Status::True, "").at(1), ruled("New", Status::True, "").at(2), applied(Ok(()), 1)];
    prune(&mut conditions, 2);
    assert_eq!(conditions.iter().map(|one| one.kind.as_str()).collect::<Vec<_>>(), ["New", "Applied"]);
}

#[test]
fn progressing_follows_applied_and_available_of_this_generation() {
    let both = |applied, available| {
        let of = |kind, generation| Condition::new(kind, Status::True, "R", "").at(generation);
        let found = default_progressing(&[of("Applied", applied), of("Available", available)], 2);
        (found.status, found.reason)
    };
    assert_eq!(both(2, 2), (Status::False, "Completed".into()));
    assert_eq!(both(2, 1), (Status::True, "Applying".into()));
    assert_eq!(both(1, 2), (Status::True, "Applying".into()));
}

#[test]
fn another_generation_is_another_progress_though_it_is_completed_at_once() {
    let of =
        |generation| ["Applied", "Available"].map(|kind| Condition::new(kind, Status::True, "R", "").at(generation));
    let mut conditions = of(1).to_vec();
    let mut since = |generation: i64, now: i64| {
        for one in of(generation) {
            crate::condition::set(&mut conditions, one, at(now));
        }
        set_default_progressing(&mut conditions, generation, at(now));
        let told = find(&conditions, "Progressing").unwrap();
        assert_eq!((told.status, told.observed_generation), (Status::False, generation));
        told.last_transition_time
    };
    assert_eq!([since(1, 10), since(1, 20), since(2, 30), since(2, 40)], [10, 10, 30, 30].map(|now| Some(at(now))));
}

#[test]
fn only_a_rule_that_makes_progressing_counts() {
    let config = |name: &str, kind: &str, condition: &str| -> ManifestConfig {
        serde_json::from_value(json!({
            "resourceIdentifier": {"resource": "configmaps", "namespace": "n", "name": name},
            "conditionRules": [{"type": kind, "condition": condition, "celExpressions": ["true"]}]}))
        .unwrap()
    };
    for (name, kind, condition, wanted) in [
        ("*", "CEL", "Progressing", true),
        ("b", "CEL", "Progressing", false),
        ("a", "WellKnownConditions", "Progressing", false),
        ("a", "CEL", "Complete", false),
    ] {
        let found = has_progressing_rule(&[config(name, kind, condition)], &[identity("a")]);
        assert_eq!(found, wanted, "{name} {kind} {condition}");
    }
    let behind = [config("a", "CEL", "Complete"), config("a", "CEL", "Progressing")];
    assert!(!has_progressing_rule(&behind, &[identity("a")]), "the first entry with rules counts");
}

#[test]
fn rules_make_no_conditions_of_ours() {
    for condition in ["Applied", "Deleting", "StatusFeedbackSynced", "", "a b", "a/b/c", "é", "-a"] {
        let rule = ConditionRule { condition: condition.into(), kind: "CEL".into(), ..ConditionRule::default() };
        let found = Evaluator::default().evaluate(&json!({}), &[rule.rule()], 1).remove(0);
        assert_eq!((found.kind.as_str(), found.reason.as_str()), (INVALID_RULE, INVALID), "{condition}");
    }
    let rule = ConditionRule { condition: "x.io/Fine".into(), kind: "CEL".into(), ..ConditionRule::default() };
    assert_eq!(rule.rule().condition, "x.io/Fine");
}

#[test]
fn what_rules_make_is_kept_and_gathered_at_its_generation() {
    let rule = ConditionRule {
        condition: "Fine".into(),
        kind: "CEL".into(),
        cel_expressions: vec!["true".into()],
        ..ConditionRule::default()
    };
    let mut one = manifest("a", vec![]);
    for condition in Evaluator::default().evaluate(&json!({}), &[rule.rule()], 2) {
        crate::condition::set(&mut one.conditions, condition, at(0));
    }
    prune(&mut one.conditions, 2);
    let found = aggregate(std::slice::from_ref(&one), 2);
    assert_eq!(find(&found, "Fine").map(|one| (one.status, one.observed_generation)), Some((Status::True, 2)));
    prune(&mut one.conditions, 3);
    assert_eq!(find(&aggregate(&[one], 3), "Fine"), None);
}

#[test]
fn what_is_complete_ends_after_its_time() {
    let mut complete = Condition::new("Complete", Status::True, "R", "");
    complete.last_transition_time = Some(at(0));
    let option = |ttl| DeleteOption { ttl_seconds_after_finished: ttl, ..DeleteOption::default() };
    let end_of = |ttl, labels: &[&'static str], condition: &Condition| {
        end(labels.iter().copied(), Some(&option(ttl)), std::slice::from_ref(condition))
    };
    assert_eq!(end_of(Some(30), &["a"], &complete), Some(at(30)));
    assert_eq!(end_of(Some(0), &[], &complete), Some(at(0)));
    assert_eq!(end_of(None, &[], &complete), None);
    assert_eq!(end_of(Some(30), &[replica_set::SET_LABEL], &complete), None);
    assert_eq!(end_of(Some(30), &[], &Condition::new("Complete", Status::False, "R", "")), None);
    assert!(end_of(Some(i64::MAX), &[], &complete).is_some());
    complete.last_transition_time = None;
    assert_eq!(end_of(Some(30), &[], &complete), None, "since when is not known");
}

#[test]
fn what_is_applied_has_a_name_of_hub_and_work() {
    // printf 'https://hub:6443' | sha256sum
    let hash = hub_hash("https://hub:6443");
    assert_eq!(hash, HASH);
    assert_eq!(applied_name(&hash, "work"), Ok(format!("{HASH}-work")));
    assert!(applied_name(&hash, &"w".repeat(188)).is_ok_and(|name| name.len() == 253));
    assert!(applied_name(&hash, &"w".repeat(189)).is_err());
    let spec = AppliedSpec { hub_hash: hash, agent_id: "agent".into(), manifest_work_name: "work".into() };
    let mut object = applied_object("name", &spec, &Map::from_iter([("a".to_owned(), json!("b"))]));
    assert_eq!(object["spec"]["agentID"], "agent");
    assert_eq!(object["metadata"]["finalizers"], json!([APPLIED_FINALIZER]));
    object["metadata"]["uid"] = json!("u");
    object["status"] = json!({"appliedResources": [{"group": "g", "resource": "r", "name": "n", "namespace": "", "version": "v1", "uid": "1"}]});
    let mut broken = object.clone();
    let read = AppliedManifestWork::try_from(object).unwrap();
    assert_eq!((read.spec.clone(), read.owner().uid, read.owner().name), (spec, "u".into(), "name".into()));
    let tracked = Tracked {
        identity: Identity { group: "g".into(), resource: "r".into(), name: "n".into(), namespace: String::new() },
        version: "v1".into(),
        uid: "1".into(),
    };
    assert_eq!(read.status.applied_resources, std::slice::from_ref(&tracked));
    broken["status"]["appliedResources"][0]["name"] = json!("../x");
    assert!(AppliedManifestWork::try_from(broken.clone()).is_err());
    broken["status"] = json!({"appliedResources": "none"});
    assert!(AppliedManifestWork::try_from(broken.clone()).is_err());
    broken["status"] = Json::Null;
    assert!(AppliedManifestWork::try_from(broken).is_ok_and(|read| read.status.applied_resources.is_empty()));
    let first = Tracked { version: "v0".into(), ..tracked.clone() };
    assert_eq!(sorted(vec![tracked.clone(), first.clone()]), [first, tracked]);
}

const HASH: &str = "9f63aa51ee73742847a1dd584c640c8b579dc14418ab416e3dd716fbe9362d31";

fn entries() -> impl proptest::strategy::Strategy<Value = Vec<ManifestCondition>> {
    let one = (0..3usize, "[a-c]", prop::sample::select(vec![Status::True, Status::False]), 1..3i64);
    prop::collection::vec(one, 0..6).prop_map(|all| {
        let of = |(ordinal, name, status, generation): (usize, String, Status, i64)| {
            let mut entry = manifest(&name, vec![Condition::new("Applied", status, "R", "").at(generation)]);
            entry.resource_meta.ordinal = ordinal;
            entry
        };
        all.into_iter().map(of).collect()
    })
}

proptest! {
    #[test]
    fn merging_again_moves_nothing(old in entries(), new in entries()) {
        // Two manifests cannot have the same position and identity.
        let places: std::collections::HashSet<_> = new.iter().map(|one| one.resource_meta.clone()).collect();
        prop_assume!(places.len() == new.len());
        let once = merged(&old, new.clone(), at(0));
        prop_assert_eq!(once.len(), new.len());
        prop_assert_eq!(merged(&once, new, at(60)), once);
    }
}

#[test]
fn an_empty_status_is_written_as_upstream_writes_it() {
    let status = ManifestWorkStatus {
        resource_status: ResourceStatus { manifests: vec![manifest("a", vec![])] },
        ..ManifestWorkStatus::default()
    };
    let written: Json = serde_json::to_value(&status).unwrap();
    assert_eq!(
        written,
        json!({"resourceStatus": {"manifests": [{"conditions": [], "statusFeedback": {},
        "resourceMeta": {"ordinal": 0, "group": "", "version": "", "kind": "", "resource": "configmaps", "name": "a", "namespace": ""}}]}})
    );
}
