use serde_json::{Value as Json, json};

use super::*;

#[expect(clippy::needless_pass_by_value, reason = "cases are written where they are used")]
fn prepared(spec: Json) -> Prepared {
    let placement = json!({"metadata": {"namespace": "team", "name": "p", "generation": 3}, "spec": spec});
    Prepared::new(&serde_json::from_value(placement).unwrap())
}

#[test]
fn a_size_is_a_count_or_a_percentage() {
    let size = |value: Json| {
        let strategy = json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": value}}});
        prepared(strategy).groups.map(|rule| rule.size.within(10).unwrap_or(10))
    };
    for (value, of_ten) in [
        (json!(3), 3),
        (json!(0), 10),
        (json!(-1), 10),
        (json!(11), 10),
        (json!("25%"), 3),
        (json!("0.5%"), 1),
        (json!("0%"), 10),
        (json!("-1%"), 10),
        (json!("100%"), 10),
        (json!("200%"), 10),
        (json!("NaN%"), 10),
    ] {
        assert_eq!(size(value.clone()), Ok(of_ten), "{value}");
    }
    for value in ["abc", "-1", "", "%", "1 %", "ten%"] {
        assert_eq!(size(json!(value)), Err(format!("{value} invalid type: string is not a percentage")));
    }
    assert_eq!(prepared(json!({})).groups.unwrap().size.within(0), None);
}

#[test]
fn tolerations_that_can_mean_nothing_are_refused() {
    let tolerations = |toleration: Json| prepared(json!({"tolerations": [toleration]})).tolerations.map(|_| ());
    assert_eq!(
        tolerations(json!({"operator": "Equal", "value": "x"})),
        Err("If the key is empty, operator must be Exists.")
    );
    assert_eq!(tolerations(json!({})), Err("If the key is empty, operator must be Exists."));
    assert_eq!(
        tolerations(json!({"key": "a", "operator": "Exists", "value": "x"})),
        Err("If the operator is Exists, the value should be empty.")
    );
    assert_eq!(tolerations(json!({"operator": "Exists"})), Ok(()));
}

#[expect(clippy::needless_pass_by_value, reason = "cases are written where they are used")]
fn weights(policy: Json) -> Result<Vec<(String, i32)>, String> {
    let prioritizers = prepared(json!({"prioritizerPolicy": policy})).prioritizers;
    prioritizers.map(|all| all.into_iter().map(|one| (one.name, one.weight)).collect())
}

fn built_in(name: &str, weight: i32) -> Json {
    json!({"scoreCoordinate": {"type": "BuiltIn", "builtIn": name}, "weight": weight})
}

#[test]
fn additive_overrides_the_default_and_exact_replaces_it() {
    let named =
        |weights: &[(&str, i32)]| Ok(weights.iter().map(|(name, weight)| ((*name).to_owned(), *weight)).collect());
    let add_on =
        json!({"scoreCoordinate": {"type": "AddOn", "addOn": {"resourceName": "r", "scoreName": "s"}}, "weight": 2});
    assert_eq!(weights(json!({})), named(&[("Balance", 1), ("Steady", 1)]));
    assert_eq!(
        weights(
            json!({"mode": "Additive", "configurations": [built_in("Steady", 0), built_in("ResourceAllocatableCPU", 3)]})
        ),
        named(&[("Balance", 1), ("ResourceAllocatableCPU", 3)])
    );
    assert_eq!(
        weights(json!({"mode": "Exact", "configurations": [built_in("Steady", -1), built_in("Steady", 4)]})),
        named(&[("Steady", 4)])
    );
    assert_eq!(
        weights(json!({"mode": "Exact", "configurations": [add_on.clone(), add_on]})),
        named(&[("AddOn/r/s", 2), ("AddOn/r/s", 2)])
    );
}

#[test]
fn unknown_coordinates_are_told() {
    let wrong = |policy: Json| weights(policy).unwrap_err();
    let configured = |configuration: Json| wrong(json!({"configurations": [configuration]}));
    assert_eq!(wrong(json!({"mode": "Sometimes"})), "incorrect prioritizer policy mode: Sometimes");
    assert_eq!(configured(json!({"weight": 1})), "scoreCoordinate field is required");
    assert_eq!(configured(built_in("Nearest", 1)), "incorrect builtin prioritizer: Nearest");
    assert_eq!(configured(json!({"scoreCoordinate": {"type": "AddOn"}, "weight": 1})), "addOn should not be empty");
    assert!(weights(json!({"configurations": [built_in("Nearest", 0)]})).is_ok(), "what is off is not looked at");
}

#[test]
fn selectors_and_expressions_are_compiled_in_order() {
    let wrong = |selector: Json| {
        prepared(json!({"predicates": [{"requiredClusterSelector": selector}]})).predicates.unwrap_err()
    };
    let near = json!([{"key": "a", "operator": "Near"}]);
    assert_eq!(
        wrong(json!({"labelSelector": {"matchExpressions": near}})),
        "\"Near\" is not a valid label selector operator"
    );
    assert_eq!(
        wrong(json!({"claimSelector": {"matchExpressions": near}})),
        "\"Near\" is not a valid label selector operator"
    );
    let cel = wrong(json!({"celSelector": {"celExpressions": ["true", "invalid.expression"]}}));
    assert!(cel.starts_with("compilation failed: ERROR: <input>:1:1: undeclared reference to 'invalid'"), "{cel}");
    let long = wrong(json!({"celSelector": {"celExpressions": vec![format!("'{}' != ''", "a".repeat(9_000)); 8]}}));
    assert_eq!(long, "compilation failed: the expressions have more than 65536 bytes in all");
    let group = json!({"decisionStrategy": {"groupStrategy": {"decisionGroups": [
        {"groupName": "g", "groupClusterSelector": {"labelSelector": {"matchExpressions": near}}}]}}});
    assert_eq!(prepared(group).groups.unwrap_err(), "\"Near\" is not a valid label selector operator");
}

#[test]
fn what_is_not_looked_at_is_told_unless_it_is_the_default() {
    assert_eq!(prepared(json!({"sortBy": "ClusterName", "scoreRateLimit": "1m", "spreadPolicy": {}})).ignored, [""; 0]);
    let set = json!({"sortBy": "Score", "scoreRateLimit": "5m", "spreadPolicy": {"spreadConstraints": [{"topologyKey": "a"}]}});
    assert_eq!(prepared(set).ignored, ["spec.spreadPolicy", "spec.sortBy", "spec.scoreRateLimit"]);
}

#[test]
fn one_that_is_deleted_or_switched_off_is_left_at_rest() {
    let is_at_rest =
        |metadata: Json| Prepared::new(&serde_json::from_value(json!({"metadata": metadata})).unwrap()).is_at_rest;
    assert!(is_at_rest(json!({"annotations": {DISABLE_ANNOTATION: "true"}})));
    assert!(is_at_rest(json!({"deletionTimestamp": "2026-03-01T12:00:00Z"})));
    assert!(!is_at_rest(json!({"annotations": {DISABLE_ANNOTATION: "false"}})));
}
