//! The explanation of a run.

use placement::explain::explain;
use serde_json::{Value as Json, json};

use crate::world::World;

fn explained(spec: &Json) -> Json {
    let world = World::new(&json!({
        "placement": {"namespace": "team", "name": "place", "spec": spec},
        "clusters": [{"name": "c1"}, {"name": "c2"}],
        "decisions": [{"namespace": "team", "name": "place-decision-1", "placement": "place",
            "clusters": ["c1", "gone"]}],
        "now": "2026-03-01T12:00:00Z",
    }));
    world.run_with(explain)
}

#[test]
fn who_is_decided_and_no_candidate_is_told() {
    let told = explained(&json!({"numberOfClusters": 1}));
    let rows = told["candidates"].as_array().expect("rows");
    let told: Vec<_> = rows.iter().map(|row| (&row["cluster"], &row["isChosen"], &row["filteredBy"])).collect();
    let expected = [json!(["c1", true, null]), json!(["c2", false, null]), json!(["gone", false, "NotInSets"])];
    assert_eq!(json!(told), json!(expected));
    assert_eq!(rows[2]["isDecided"], true);
}

#[test]
fn of_one_that_was_not_evaluated_nothing_is_told_but_what_is_decided() {
    let told = explained(&json!({"tolerations": [{"operator": "Equal", "value": "x"}]}));
    assert_eq!((&told["isEvaluated"], &told["groups"]), (&json!(false), &json!([])));
    assert_eq!(told["candidates"][0], json!({"cluster": "c1", "isDecided": true}));
    let conditions = told["conditions"].as_array().expect("conditions");
    assert!(conditions.len() == 1 && conditions[0]["type"] == "PlacementMisconfigured", "{conditions:?}");
}
