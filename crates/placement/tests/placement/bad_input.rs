//! Bad input gets a clear condition, and decisions stay as they are.

use placement::conditions::Condition;
use placement::objects::{ManagedCluster, ManagedClusterSetBinding};
use placement::{Filter, Outcome, schedule};
use serde_json::{Value as Json, json};

use crate::world::World;

/// Three clusters; the first one is chosen now.
#[expect(clippy::needless_pass_by_value, reason = "cases are written where they are used")]
fn world(spec: Json) -> World {
    let cluster = |name: &str| json!({"name": name, "labels": {"env": "prod"}});
    World::new(&json!({
        "placement": {"namespace": "team", "name": "place", "spec": spec},
        "clusters": [cluster("c1"), cluster("c2"), cluster("c3")],
        "decisions": [{"namespace": "team", "name": "place-decision-1", "placement": "place", "clusters": ["c1"]}],
        "now": "2026-03-01T12:00:00Z",
    }))
}

/// Runs it; asserts that its decisions stay, and returns the message.
#[expect(clippy::needless_pass_by_value, reason = "cases are written where they are used")]
fn misconfigured(spec: Json) -> String {
    world(spec.clone()).run(|outcome| {
        let condition = &outcome.conditions[0];
        let found = (condition.kind, condition.is_true, condition.reason);
        assert_eq!(found, ("PlacementMisconfigured", true, "Misconfigured"), "{spec}");
        assert!(outcome.groups.is_none(), "decisions are kept: {spec}");
        condition.message.clone()
    })
}

fn chosen(spec: Json) -> Vec<String> {
    let names = |outcome: &Outcome<'_>| outcome.chosen.iter().map(|name| (*name).to_owned()).collect();
    world(spec).run(|outcome| {
        assert!(!outcome.conditions[0].is_true, "{:?}", outcome.conditions);
        names(outcome)
    })
}

fn expression(text: &str) -> Json {
    json!({"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": [text]}}}]})
}

#[expect(clippy::needless_pass_by_value, reason = "cases are written where they are used")]
fn per_group(value: Json) -> Json {
    json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": value}}})
}

#[test]
fn what_cannot_be_evaluated_says_why_and_keeps_its_decisions() {
    let near = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
    let select = |selector: Json| json!({"predicates": [{"requiredClusterSelector": selector}]});
    let built_in = json!({"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Nearest"}, "weight": 1});
    let operator = "\"Near\" is not a valid label selector operator";
    for (spec, message) in [
        (
            json!({"tolerations": [{"operator": "Equal", "value": "x"}]}),
            "TaintToleration:If the key is empty, operator must be Exists.".to_owned(),
        ),
        (
            json!({"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]}),
            "TaintToleration:If the operator is Exists, the value should be empty.".to_owned(),
        ),
        (json!({"prioritizerPolicy": {"mode": "Some"}}), ":incorrect prioritizer policy mode: Some".to_owned()),
        (
            json!({"prioritizerPolicy": {"configurations": [built_in]}}),
            ":incorrect builtin prioritizer: Nearest".to_owned(),
        ),
        (
            json!({"prioritizerPolicy": {"configurations": [{"scoreCoordinate": {"type": "AddOn"}, "weight": 1}]}}),
            ":addOn should not be empty".to_owned(),
        ),
        (select(json!({"labelSelector": near})), format!("Predicate:{operator}")),
        (select(json!({"claimSelector": near})), format!("Predicate:{operator}")),
        (per_group(json!("abc")), ":abc invalid type: string is not a percentage".to_owned()),
        (per_group(json!("-1")), ":-1 invalid type: string is not a percentage".to_owned()),
    ] {
        assert_eq!(misconfigured(spec.clone()), message, "{spec}");
    }
    assert!(
        misconfigured(expression("managedCluster.x =="))
            .starts_with("Predicate:compilation failed: ERROR: <input>:1:20")
    );
    assert!(misconfigured(expression("1 + 'a' == 2")).contains("found no matching overload for '_+_'"));
    // It would never match, and no cluster would be left.
    let zone = misconfigured(expression("timestamp(0).getHours('Europe/Berlin') < 24"));
    assert!(zone.contains("unknown time zone 'Europe/Berlin'"), "{zone}");
}

#[test]
fn it_says_which_decisions_are_kept() {
    let world = world(per_group(json!("abc")));
    let with = |decided_generation: Option<i64>| -> Condition {
        world.run_with(|input| schedule(&placement::Input { decided_generation, ..*input }).conditions[0].clone())
    };
    assert!(with(None).message.ends_with("a percentage"));
    assert!(with(Some(7)).message.ends_with("; the decisions of generation 7 are kept"));
}

#[test]
fn an_expression_that_is_no_boolean_or_fails_does_not_match() {
    for text in ["'a'", "1", "managedCluster.none", "managedCluster.none == 1", "1 / 0 == 1"] {
        assert_eq!(chosen(expression(text)), [""; 0], "{text}");
    }
    assert_eq!(chosen(expression("true")).len(), 3);
}

#[test]
fn an_expression_that_costs_too_much_stops_nothing() {
    let ten = "[0,1,2,3,4,5,6,7,8,9]";
    let folds = |depth: usize| (0..depth).fold("true".to_owned(), |inside, at| format!("{ten}.all(x{at}, {inside})"));
    // On three clusters it does not match.
    assert_eq!(chosen(expression(&folds(6))), [""; 0]);
    assert_eq!(chosen(expression(&folds(3))).len(), 3);
    // On a hundred, it is too much for the run: no cluster is withdrawn for it.
    let mut many = world(expression(&folds(6)));
    let cluster = |at: usize| ManagedCluster::from(json!({"metadata": {"name": format!("c{at}")}}));
    many.clusters = (0..100).map(cluster).collect();
    let message = many.run(|outcome| {
        assert!(outcome.groups.is_none());
        outcome.conditions[0].message.clone()
    });
    assert!(message.starts_with("Predicate:the predicates take more than 10000000 steps"), "{message}");
}

#[test]
fn sizes_that_limit_nothing_are_none() {
    for value in [json!(-1), json!(0), json!("0%"), json!("200%"), json!(9)] {
        let groups = world(per_group(value.clone())).run(|outcome| outcome.groups.as_ref().map(Vec::len));
        assert_eq!(groups, Some(1), "{value}");
    }
}

#[test]
fn nobody_is_chosen_where_nobody_is_asked_for() {
    for count in [0, -3] {
        world(json!({"numberOfClusters": count})).run(|outcome| {
            assert!(outcome.chosen.is_empty());
            assert_eq!(outcome.groups.as_ref().map(Vec::len), Some(1), "one empty object");
            assert_eq!(outcome.conditions[1].reason, "NoManagedClusterMatched");
        });
    }
}

#[test]
fn fields_that_are_ignored_are_told() {
    world(json!({"sortBy": "Score"})).run(|outcome| {
        assert!(!outcome.conditions[0].is_true);
        assert_eq!(outcome.conditions[0].message, "Placement configurations check pass; ignored: spec.sortBy");
    });
}

#[test]
fn sets_that_overlap_give_each_cluster_once() {
    let all = json!({"selectorType": "LabelSelector", "labelSelector": {}});
    let prod = json!({"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"env": "prod"}}});
    let world = World::new(&json!({
        "placement": {"namespace": "team", "name": "place"},
        "sets": [{"name": "all", "clusterSelector": all}, {"name": "prod", "clusterSelector": prod}],
        "bindings": ["all", "prod", "gone"],
        "clusters": [{"name": "c2", "labels": {"env": "prod"}}, {"name": "c1", "labels": {}}],
    }));
    world.run(|outcome| assert_eq!(outcome.chosen, ["c1", "c2"]));
}

#[test]
fn a_set_that_cannot_be_read_withdraws_nobody() {
    let world = World::new(&json!({
        "placement": {"namespace": "team", "name": "place"},
        "sets": [{"name": "odd", "clusterSelector": {"selectorType": "Odd"}}, {"name": "s", "clusterSelector": {}}],
        "bindings": ["odd", "s"],
        "clusters": [{"name": "c1", "labels": {"cluster.open-cluster-management.io/clusterset": "s"}}],
    }));
    world.run(|outcome| {
        assert!(outcome.groups.is_none());
        assert_eq!(outcome.conditions[0].message, ":ManagedClusterSet odd: selectorType is not right: Odd");
    });
}

#[test]
fn clusters_without_status_or_times_are_judged_all_the_same() {
    let taint = json!([{"key": "a", "effect": "NoSelect"}]);
    let mut world = world(json!({
        "tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 600}],
        "prioritizerPolicy": {"configurations": [
            {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "ResourceAllocatableCPU"}, "weight": 1}]},
    }));
    world.clusters = vec![
        ManagedCluster::from(json!({"metadata": {"name": "bare"}})),
        ManagedCluster::from(json!({"metadata": {"name": "tainted"}, "spec": {"taints": taint}})),
    ];
    world.run(|outcome| {
        assert_eq!(outcome.chosen, ["bare"]);
        assert_eq!(outcome.candidates[1].filtered_by, Some(Filter::TaintToleration));
        assert_eq!(outcome.prioritizers[2].scores, [None, None]);
        assert_eq!(outcome.requeue_at, None);
    });
}

#[test]
fn a_score_that_is_too_large_counts_and_is_warned_of() {
    let coordinate = json!({"type": "AddOn", "addOn": {"resourceName": "load", "scoreName": "a"}});
    let world = World::new(&json!({
        "placement": {"namespace": "team", "name": "place", "spec": {"prioritizerPolicy": {
            "mode": "Exact", "configurations": [{"scoreCoordinate": coordinate, "weight": 2}]}}},
        "clusters": [{"name": "c1"}, {"name": "c2"}],
        "scores": [{"cluster": "c2", "resource": "load", "scores": [{"name": "a", "value": 300}]}],
    }));
    world.run(|outcome| {
        assert_eq!(outcome.chosen, ["c2", "c1"]);
        assert_eq!(outcome.score_message(), "c1:0 c2:600 ");
        let warnings: Vec<&str> = outcome.warnings.iter().map(|warning| warning.message.as_str()).collect();
        assert_eq!(warnings, ["AddOnPlacementScores c2/load outside -100..100"]);
    });
}

#[test]
fn messages_have_an_end() {
    let coordinate = json!({"type": "AddOn", "addOn": {"resourceName": "load", "scoreName": "a"}});
    let name = |at: usize| format!("cluster-{at:04}");
    let score = |at: usize| json!({"cluster": name(at), "resource": "load", "scores": [], "validUntil": "2026-01-01T00:00:00Z"});
    let world = World::new(&json!({
        "placement": {"namespace": "team", "name": "place", "spec": {"prioritizerPolicy": {
            "configurations": [{"scoreCoordinate": coordinate, "weight": 2}]}}},
        "clusters": (0..500).map(|at| json!({"name": name(at)})).collect::<Vec<_>>(),
        "scores": (0..500).map(score).collect::<Vec<_>>(),
        "now": "2026-03-01T12:00:00Z",
    }));
    world.run(|outcome| {
        let scores = outcome.score_message();
        assert!(scores.starts_with("cluster-0000:100 cluster-0001:100 ") && scores.ends_with(" ......"), "{scores}");
        assert!(scores.len() <= 1_006 && scores.len() > 980, "{}", scores.len());
        let warning = &outcome.warnings[0].message;
        assert!(warning.len() < 1_100 && warning.ends_with("...... expired"), "{warning}");
    });
}

#[test]
fn ten_thousand_bindings_of_a_set_are_one() {
    let mut world = world(json!({}));
    let binding = |at: usize| ManagedClusterSetBinding { namespace: format!("ns-{at}"), name: "all".to_owned() };
    world.bindings.extend((0..10_000).map(binding));
    world.run(|outcome| assert_eq!(outcome.chosen.len(), 3));
}

#[test]
fn one_that_would_keep_everybody_busy_is_misconfigured() {
    let tolerations: Vec<_> = (0..257).map(|at| json!({"key": format!("k{at}"), "operator": "Exists"})).collect();
    let message = misconfigured(json!({"tolerations": tolerations}));
    assert!(message.starts_with("TaintToleration:There are more than 256 tolerations."), "{message}");
    let groups: Vec<_> = (0..1001).map(|at| json!({"groupName": format!("g{at}")})).collect();
    let message = misconfigured(json!({"decisionStrategy": {"groupStrategy": {"decisionGroups": groups}}}));
    assert!(message.contains("decisionGroups have more than 1000 requirements"), "{message}");
    // No cluster has these labels, so that each predicate is checked for each cluster.
    let predicates: Vec<_> = (0..6000)
        .map(|at| json!({"requiredClusterSelector": {"labelSelector": {"matchLabels": {format!("n{at}"): "x"}}}}))
        .collect();
    many(1000, json!({"predicates": predicates[..1000]}), |outcome| {
        assert_eq!(outcome.conditions[0].reason, "Succeedconfigured", "a million is nothing");
    });
    many(1000, json!({"predicates": predicates}), |outcome| {
        let message = &outcome.conditions[0].message;
        assert!(message.starts_with("Predicate:the predicates take more than 10000000 steps"), "{message}");
        assert!(outcome.groups.is_none(), "decisions are kept");
    });
}

#[test]
fn groups_take_a_thousand_decisions_at_most() {
    many(1000, per_group(json!(1)), |outcome| assert_eq!(outcome.groups.as_ref().map(Vec::len), Some(1000)));
    many(1001, per_group(json!(1)), |outcome| {
        let message = &outcome.conditions[0].message;
        assert!(message.starts_with(":the groups take 1001 decisions, of which there can be 1000"), "{message}");
        assert!(outcome.groups.is_none(), "decisions are kept");
    });
}

#[expect(clippy::needless_pass_by_value, reason = "cases are written where they are used")]
fn many(count: usize, spec: Json, look: impl FnOnce(&Outcome<'_>)) {
    let clusters: Vec<_> = (0..count).map(|at| json!({"name": format!("c{at:05}")})).collect();
    let placement = json!({"namespace": "team", "name": "place", "spec": spec});
    World::new(&json!({"placement": placement, "clusters": clusters})).run(look);
}
