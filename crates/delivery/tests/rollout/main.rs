//! Compares our rollouts with results of upstream's rollout handler, recorded as data.

use delivery::condition::{Condition, Status, set};
use delivery::rollout::{
    DecisionGroup, Existing, InvalidStrategy, Rollout, RolloutStatus, RolloutStrategy, deadline, roll_out, state,
};
use placement::prepared::Size;
use serde_json::{Value as Json, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

const TABLES: &str = include_str!("../vectors/ocm-table-rollout.json");
const RANDOM: &str = include_str!("../vectors/ocm-random-rollout-1.json");
const STATES: [(&str, RolloutStatus); 6] = [
    ("ToApply", RolloutStatus::ToApply),
    ("Progressing", RolloutStatus::Progressing),
    ("Succeeded", RolloutStatus::Succeeded),
    ("Failed", RolloutStatus::Failed),
    ("TimeOut", RolloutStatus::TimeOut),
    ("Skip", RolloutStatus::Skip),
];

fn text(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

fn moment(value: &Json) -> Option<OffsetDateTime> {
    value.as_str().map(|text| OffsetDateTime::parse(text, &Rfc3339).expect("RFC 3339"))
}

fn list(value: &Json) -> &[Json] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn named(name: &str) -> RolloutStatus {
    STATES.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no state {name}")).1
}

fn name(state: RolloutStatus) -> &'static str {
    STATES.iter().find(|(_, known)| *known == state).expect("a state").0
}

fn cases(table: &str) -> Vec<(String, Json, Json)> {
    let tables: Vec<Json> = serde_json::from_str(TABLES).expect("JSON");
    let table = tables.iter().find(|known| known["table"] == *table).unwrap_or_else(|| panic!("no table {table}"));
    let cases = list(&table["cases"]);
    assert!(!cases.is_empty());
    cases.iter().map(|case| (text(&case["id"]).to_owned(), case["in"].clone(), case["expect"].clone())).collect()
}

/// Runs a case, and passes the result to `look`.
fn run<T>(case: &Json, look: impl FnOnce(Result<Rollout<'_>, InvalidStrategy>) -> T) -> T {
    let strategy: RolloutStrategy = serde_json::from_value(case["strategy"].clone()).expect("a strategy");
    let group = |group: &'_ Json| -> (usize, String, Vec<String>) {
        let clusters = list(&group["clusters"]).iter().map(|cluster| text(cluster).to_owned()).collect();
        (
            usize::try_from(group["index"].as_u64().unwrap_or(0)).expect("small"),
            text(&group["name"]).to_owned(),
            clusters,
        )
    };
    let owned: Vec<_> = list(&case["groups"]).iter().map(group).collect();
    let groups: Vec<DecisionGroup<'_>> = owned
        .iter()
        .map(|(index, name, clusters)| DecisionGroup {
            index: *index,
            name,
            clusters: clusters.iter().map(String::as_str).collect(),
        })
        .collect();
    let existing: Vec<Existing<'_>> = list(&case["existing"])
        .iter()
        .map(|one| Existing {
            cluster: text(&one["cluster"]),
            state: named(text(&one["status"])),
            since: moment(&one["lastTransitionTime"]),
        })
        .collect();
    look(roll_out(&strategy, &groups, &existing, moment(&case["now"]).expect("a time")))
}

fn assert_found(found: Result<Rollout<'_>, InvalidStrategy>, case: &Json, expect: &Json, id: &str) {
    if expect["error"] == json!(true) || expect["error"].is_string() {
        assert!(found.is_err(), "{id}");
        return;
    }
    let found = found.unwrap_or_else(|error| panic!("{id}: {error}"));
    let mut turns: Vec<_> = found.to_roll_out.iter().map(|turn| (turn.cluster, name(turn.state))).collect();
    turns.sort_unstable();
    let wanted: Vec<_> =
        list(&expect["toRollOut"]).iter().map(|one| (text(&one["cluster"]), text(&one["status"]))).collect();
    assert_eq!(turns, wanted, "{id}");
    assert_eq!(json!(found.timed_out), expect["timedOut"], "{id}");
    assert_eq!(json!(found.removed), expect["removed"], "{id}");
    assert_eq!(json!(found.has_too_many_failures), expect["maxFailureBreach"], "{id}");
    let now = moment(&case["now"]).expect("a time");
    let after = found.recheck_at.map(|at| (at - now).as_seconds_f64());
    assert_eq!(after, expect["recheckAfterSeconds"].as_f64(), "{id}");
}

#[test]
fn tables_of_the_handler() {
    for (id, case, expect) in cases("rollout") {
        run(&case, |found| assert_found(found, &case, &expect, &id));
    }
}

#[test]
fn random_inputs_of_the_handler() {
    let cases: Vec<Json> = serde_json::from_str(RANDOM).expect("JSON");
    assert_eq!(cases.len(), 100);
    for case in &cases {
        run(case, |found| assert_found(found, case, &case["expect"], text(&case["id"])));
    }
}

#[test]
fn deadlines() {
    for (id, case, expect) in cases("deadline") {
        let found = deadline(text(&case["progressDeadline"]));
        let found = match found {
            Err(_) => json!({"error": true}),
            Ok(None) => json!({"seconds": "never"}),
            Ok(Some(span)) => json!({"seconds": span.as_seconds_f64()}),
        };
        assert_eq!(found, expect, "{id}");
    }
}

#[test]
fn sizes() {
    for (id, case, expect) in cases("size") {
        let total = usize::try_from(case["total"].as_u64().expect("a count")).expect("small");
        let size = Size::read(&serde_json::from_value(case["size"].clone()).expect("a size"));
        let found = size.map(|size| size.within(total).unwrap_or(total));
        let found = found.map_or(json!({"error": true}), |size| json!({"size": size}));
        assert_eq!(found, expect, "{id}");
    }
}

#[test]
fn states_of_works() {
    for (id, case, expect) in cases("state-of-a-work") {
        let conditions: Vec<Condition> = serde_json::from_value(case["conditions"].clone()).expect("conditions");
        let (found, _) = state(case["generation"].as_i64().expect("a generation"), &conditions);
        assert_eq!(name(found), text(&expect["status"]), "{id}");
    }
}

#[test]
fn what_cannot_be_read_is_told() {
    let wrong = |strategy: Json| {
        run(&json!({"strategy": strategy, "now": "2026-03-01T12:00:00Z"}), |found| found.unwrap_err().to_string())
    };
    assert_eq!(wrong(json!({"type": "Later"})), "incorrect rollout strategy type Later");
    assert_eq!(
        wrong(json!({"type": "Progressive", "progressive": {"maxConcurrency": "x"}})),
        "failed to parse the provided maxConcurrency: x invalid type: string is not a percentage"
    );
    assert_eq!(wrong(json!({"type": "All", "all": {"progressDeadline": "soon"}})), "invalid timeout format");
    assert_eq!(
        wrong(json!({"type": "ProgressivePerGroup", "progressivePerGroup": {"minSuccessTime": "soon"}})),
        "minSuccessTime: invalid duration \"soon\""
    );
}

#[test]
fn a_state_lasts_since_its_condition() {
    let at = |second| OffsetDateTime::from_unix_timestamp(second).ok();
    let condition = |kind, status, second| {
        let mut all = vec![];
        set(&mut all, Condition::new(kind, status, "R", "").at(1), at(second).expect("a time"));
        all.remove(0)
    };
    let applied = condition("Applied", Status::True, 1);
    let progressing = condition("Progressing", Status::True, 2);
    assert_eq!(state(1, &[applied.clone(), progressing.clone()]), (RolloutStatus::Progressing, at(2)));
    assert_eq!(
        state(1, &[applied.clone(), progressing.clone(), condition("Degraded", Status::True, 3)]),
        (RolloutStatus::Failed, at(3))
    );
    assert_eq!(
        state(1, &[applied.clone(), progressing.clone(), condition("Degraded", Status::False, 3)]),
        (RolloutStatus::Progressing, at(2))
    );
    assert_eq!(state(2, &[applied.clone(), progressing.clone()]), (RolloutStatus::ToApply, None));
}
