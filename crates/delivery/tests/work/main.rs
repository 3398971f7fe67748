//! Compares our results with those of upstream's agent in its own tests, recorded as data.

use delivery::condition::Condition;
use delivery::deletion::untracked;
use delivery::feedback::{self, Feedback};
use delivery::identity::{Identity, Tracked};
use delivery::rules;
use delivery::strategy::Strategy;
use delivery::work::{
    ConditionRule, DeleteOption, FeedbackRule, FieldValue, ManifestCondition, ManifestConfig, is_owned, merged, options,
};
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use time::OffsetDateTime;

/// Bytes of JSON that upstream's own test allows.
const RAW: usize = 40;
const TABLES: &str = include_str!("../vectors/ocm-table-work.json");

fn cases(table: &str) -> Vec<(String, Json, Json)> {
    let tables: Vec<Json> = serde_json::from_str(TABLES).expect("JSON");
    let table = tables.iter().find(|known| known["table"] == *table).unwrap_or_else(|| panic!("no table {table}"));
    let cases = table["cases"].as_array().expect("cases");
    assert!(!cases.is_empty());
    let part = |case: &Json, name: &str| case[name].clone();
    cases.iter().map(|case| (case["id"].to_string(), part(case, "in"), part(case, "expect"))).collect()
}

fn read<T: DeserializeOwned>(value: &Json) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"))
}

#[test]
fn every_table_is_known() {
    let tables: Vec<Json> = serde_json::from_str(TABLES).expect("JSON");
    let names: Vec<&str> = tables.iter().filter_map(|table| table["table"].as_str()).collect();
    let known = [
        "config-lookup",
        "owned",
        "name-match",
        "untracked",
        "merge-manifest-conditions",
        "feedback",
        "condition-rules",
    ];
    assert_eq!(names, known);
}

#[test]
fn the_first_entry_with_a_value_counts() {
    for (id, case, expect) in cases("config-lookup") {
        let configs: Vec<ManifestConfig> = read(&case["manifestConfigs"]);
        let found = options(&read(&case["resource"]), &configs);
        let wanted: ManifestConfig = read::<Option<_>>(&expect["config"]).unwrap_or_default();
        assert_eq!(found.feedback_rules, wanted.feedback_rules, "{id}");
        assert_eq!(found.update_strategy, wanted.update_strategy.as_ref(), "{id}");
        assert_eq!(found.condition_rules, wanted.condition_rules, "{id}");
    }
}

#[test]
fn orphans_are_not_owned() {
    for (id, case, expect) in cases("owned") {
        let option: Option<DeleteOption> = read(&case["deleteOption"]);
        assert_eq!(is_owned(&read(&case["resource"]), option.as_ref(), &Strategy::Update), expect["owned"], "{id}");
    }
}

/// The case's `pattern` is the object's name, and its `name` is the entry's.
#[test]
fn names_match() {
    for (id, case, expect) in cases("name-match") {
        let named = |name: &Json| Identity { name: read(name), ..Identity::default() };
        let strategy = Some(delivery::work::UpdateStrategy::default());
        let config = ManifestConfig {
            resource_identifier: named(&case["name"]),
            update_strategy: strategy,
            ..ManifestConfig::default()
        };
        let configs = [config];
        let found = options(&named(&case["pattern"]), &configs);
        assert_eq!(found.update_strategy.is_some(), expect["matches"], "{id}");
    }
}

#[test]
fn what_is_no_longer_in_the_work_is_found() {
    for (id, case, expect) in cases("untracked") {
        let (before, after): (Vec<Tracked>, Vec<Tracked>) = (read(&case["before"]), read(&case["after"]));
        let found: Vec<Tracked> = untracked(&before, &after, &[]).into_iter().cloned().collect();
        assert_eq!(found, read::<Vec<Tracked>>(&expect["untracked"]), "{id}");
    }
}

#[test]
fn conditions_of_manifests_are_merged() {
    let now = OffsetDateTime::from_unix_timestamp(1_772_366_400).expect("a time");
    for (id, case, expect) in cases("merge-manifest-conditions") {
        let mut wanted: Vec<ManifestCondition> = read(&expect["merged"]);
        let found = merged(&read::<Vec<_>>(&case["old"]), read(&case["new"]), now);
        let mut plain = found.clone();
        for one in plain.iter_mut().chain(&mut wanted).flat_map(|manifest| &mut manifest.conditions) {
            // Cases have no clock: only times that were kept are compared.
            one.last_transition_time = one.last_transition_time.filter(|time| *time != now);
        }
        assert_eq!(plain, wanted, "{id}");
    }
}

#[test]
fn values_are_fed_back() {
    for (id, case, expect) in cases("feedback") {
        let rule = read::<FeedbackRule>(&case["rule"]).rule().unwrap_or_else(|| panic!("{id}: no rule"));
        let found = feedback::read(&case["object"], &[rule], (case["raw"] == true).then_some(RAW));
        let Feedback { values, errors } = found;
        let told = |(name, value)| json!({"name": name, "fieldValue": FieldValue::from(value)});
        let values: Vec<Json> = values.into_iter().map(told).collect();
        assert_eq!(
            (Json::from(values), !errors.is_empty()),
            (expect["values"].clone(), expect["error"] == true),
            "{id}"
        );
    }
}

#[test]
fn rules_make_conditions() {
    for (id, case, expect) in cases("condition-rules") {
        let rule = read::<ConditionRule>(&case["rule"]).rule();
        let steps = case["upstreamCostBudget"].as_u64().unwrap_or(rules::OBJECT);
        let found: Vec<Condition> = rules::Evaluator::within(steps).evaluate(&case["object"], &[rule], 0);
        let wanted: Condition = read(&expect["condition"]);
        assert_eq!(found, [wanted], "{id}");
    }
}
