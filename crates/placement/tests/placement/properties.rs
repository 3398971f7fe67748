//! Properties that hold for any input.

use std::collections::BTreeSet;

use placement::cel::{Failure, Host, Meter, Program, Type, Value};
use placement::objects::PlacementDecision;
use placement::slices::{SLICE, objects};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::world::World;

fn labels() -> impl Strategy<Value = Json> {
    let set = prop_oneof![Just("s1"), Just("s2"), Just("none")];
    let env = prop_oneof![Just("prod"), Just("dev")];
    (set, env).prop_map(|(set, env)| json!({"cluster.open-cluster-management.io/clusterset": set, "env": env}))
}

fn taints() -> impl Strategy<Value = Json> {
    let effect = prop_oneof![Just("NoSelect"), Just("NoSelectIfNew"), Just("PreferNoSelect")];
    let taint = (effect, 0..60u8).prop_map(
        |(effect, second)| json!({"key": "k", "effect": effect, "timeAdded": format!("2026-03-01T11:59:{second:02}Z")}),
    );
    prop::collection::vec(taint, 0..2).prop_map(Json::from)
}

fn cluster() -> impl Strategy<Value = Json> {
    (0..30u8, labels(), taints(), 0..5u8).prop_map(|(name, labels, taints, cores)| {
        let cpu = json!({"cpu": cores.to_string()});
        json!({"name": format!("c{name}"), "labels": labels, "taints": taints, "allocatable": cpu, "capacity": cpu})
    })
}

fn weight(name: &'static str, range: std::ops::Range<i32>) -> impl Strategy<Value = Json> {
    range.prop_map(move |weight| json!({"scoreCoordinate": {"type": "BuiltIn", "builtIn": name}, "weight": weight}))
}

fn spec() -> impl Strategy<Value = Json> {
    let count = prop::option::of(0..20u8);
    let weights = (weight("Steady", 0..5), weight("Balance", -3..4), weight("ResourceAllocatableCPU", -3..4));
    let predicate = prop::option::of(Just(json!([{"requiredClusterSelector": {
        "celSelector": {"celExpressions": ["managedCluster.metadata.labels.env == 'prod'"]}}}])));
    let per_group = prop_oneof![Just(json!(0)), Just(json!(3)), Just(json!("30%"))];
    (count, weights, predicate, per_group, prop::option::of(0..120u8)).prop_map(
        |(count, (steady, balance, cpu), predicates, per_group, seconds)| {
            let toleration = json!({"key": "k", "operator": "Exists", "tolerationSeconds": seconds});
            let canary = json!({"groupName": "canary", "groupClusterSelector": {
                "labelSelector": {"matchLabels": {"env": "dev"}}}});
            json!({
                "numberOfClusters": count,
                "predicates": predicates.unwrap_or(json!([])),
                "tolerations": if seconds.is_some() { json!([toleration]) } else { json!([]) },
                "prioritizerPolicy": {"configurations": [steady, balance, cpu]},
                "decisionStrategy": {"groupStrategy": {
                    "clustersPerDecisionGroup": per_group, "decisionGroups": [canary]}},
            })
        },
    )
}

fn decision() -> impl Strategy<Value = Json> {
    let placement = prop_oneof![Just("place"), Just("other")];
    (placement, 0..4u8, prop::collection::vec(0..30u8, 0..6)).prop_map(|(placement, at, clusters)| {
        let clusters: Vec<String> = clusters.into_iter().map(|name| format!("c{name}")).collect();
        json!({"namespace": "team", "name": format!("{placement}-decision-{at}"), "placement": placement,
            "clusters": clusters})
    })
}

/// Names are unique, as on a hub.
fn unique(mut all: Vec<Json>) -> Vec<Json> {
    let mut seen = BTreeSet::new();
    all.retain(|one| seen.insert(one["name"].to_string()));
    all
}

fn case() -> impl Strategy<Value = Json> {
    let clusters = prop::collection::vec(cluster(), 0..25).prop_map(unique);
    let decisions = prop::collection::vec(decision(), 0..5).prop_map(unique);
    (spec(), clusters, decisions).prop_map(|(spec, clusters, decisions)| {
        json!({
            "placement": {"namespace": "team", "name": "place", "spec": spec},
            "sets": [{"name": "s1", "clusterSelector": {}}, {"name": "dev", "clusterSelector": {
                "selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"env": "dev"}}}}],
            "bindings": ["s1", "dev", "gone"],
            "clusters": clusters, "decisions": decisions, "now": "2026-03-01T12:00:00Z",
        })
    })
}

/// Everything that a run found, except what it borrowed.
fn found(world: &World) -> String {
    world.run(|outcome| {
        let candidates: Vec<_> =
            outcome.candidates.iter().map(|one| (&one.cluster.name, one.filtered_by, one.total)).collect();
        let rest = (&outcome.prioritizers, &outcome.chosen, &outcome.groups, &outcome.conditions, outcome.requeue_at);
        format!("{candidates:?} {rest:?}")
    })
}

fn told(world: &World) -> String {
    world.run(|outcome| format!("{:?}", outcome.groups))
}

/// Replaces the Placement's decisions with what it chooses.
fn write(world: &mut World) {
    let told: Vec<PlacementDecision> = world.run(|outcome| {
        let groups = outcome.groups.as_deref().unwrap_or_default();
        let decision = |object: placement::slices::DecisionObject<'_>| PlacementDecision {
            namespace: "team".to_owned(),
            name: object.name,
            placement: Some("place".to_owned()),
            clusters: object.clusters.iter().map(|cluster| (*cluster).to_owned()).collect(),
        };
        objects("place", groups).into_iter().map(decision).collect()
    });
    let names: Vec<String> = world.decisions.of("team", "place").map(|one| one.name.clone()).collect();
    for name in names {
        world.decisions.remove("team", &name);
    }
    for decision in told {
        world.decisions.put(decision);
    }
}

struct NoScores;

impl<'a> Host<'a> for NoScores {
    fn scores(&self, _: &str, _: &str) -> Option<Vec<(&'a str, i64)>> {
        None
    }
}

proptest! {
    #[test]
    fn the_order_of_the_input_does_not_matter(case in case(), seed in any::<u64>()) {
        let mut world = World::new(&case);
        let before = found(&world);
        let key = |at: usize| (seed ^ u64::try_from(at).unwrap_or(0)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for list in 0..3 {
            let mut order = 0;
            let mut shuffled = || { order += 1; key(order + list) };
            match list {
                0 => world.clusters.sort_by_cached_key(|_| shuffled()),
                1 => world.sets.sort_by_cached_key(|_| shuffled()),
                _ => world.bindings.sort_by_cached_key(|_| shuffled()),
            }
        }
        prop_assert_eq!(found(&world), before);
    }

    #[test]
    fn no_more_than_asked_each_once_and_all_in_groups(case in case()) {
        let asked = case["placement"]["spec"]["numberOfClusters"].as_u64();
        World::new(&case).run(|outcome| {
            let chosen: BTreeSet<&str> = outcome.chosen.iter().copied().collect();
            prop_assert_eq!(chosen.len(), outcome.chosen.len());
            if let Some(asked) = asked {
                prop_assert_eq!(outcome.chosen.len() + outcome.unscheduled, usize::try_from(asked).unwrap_or(0).max(outcome.chosen.len()));
                prop_assert!(outcome.chosen.len() <= usize::try_from(asked).unwrap_or(0));
            }
            let feasible: BTreeSet<&str> = outcome.feasible().map(|one| one.cluster.name.as_str()).collect();
            prop_assert!(chosen.is_subset(&feasible));
            let groups = outcome.groups.as_deref().expect("nothing is wrong with it");
            let grouped: Vec<&str> = groups.iter().flat_map(|group| group.clusters.iter().copied()).collect();
            prop_assert_eq!(grouped.len(), chosen.len());
            prop_assert_eq!(grouped.into_iter().collect::<BTreeSet<_>>(), chosen);
            let objects = objects("place", groups);
            prop_assert!(!objects.is_empty() && objects.iter().all(|object| object.clusters.len() <= SLICE));
            prop_assert!(groups.iter().all(|group| group.clusters.is_sorted()));
            Ok(())
        })?;
    }

    /// A cluster that is removed because it is no longer chosen never comes back, so the runs
    /// settle.
    #[test]
    fn runs_that_see_their_own_result_settle_where_steady_is_no_reason_to_leave(case in case()) {
        let mut world = World::new(&case);
        let mut rounds = vec![told(&world)];
        let mut is_still = false;
        while !is_still && rounds.len() < 30 {
            write(&mut world);
            let next = told(&world);
            is_still = rounds.last() == Some(&next);
            rounds.push(next);
        }
        prop_assert!(is_still, "{:?}", rounds);
    }

    #[test]
    fn any_text_is_an_expression_or_a_fault(text in ".{0,80}") {
        compile_and_run(&text)?;
    }

    #[test]
    fn any_words_are_an_expression_or_a_fault(words in prop::collection::vec(prop::sample::select(WORDS), 0..24)) {
        compile_and_run(&words.concat())?;
    }
}

const WORDS: &[&str] = &[
    "managedCluster",
    ".metadata",
    ".name",
    "[0]",
    "[?0]",
    ".?a",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "?",
    " + ",
    "-",
    " * ",
    " / ",
    " % ",
    " == ",
    " < ",
    " in ",
    "&&",
    "||",
    "!",
    "1",
    "0",
    "9223372036854775807",
    "1u",
    "1.5",
    "'a'",
    "\"\"",
    "b'a'",
    "true",
    "null",
    "size(",
    "int(",
    "string(",
    "[1,2]",
    "{'a':1}",
    ".all(x, ",
    ".map(x, ",
    ".filter(x, ",
    "x",
    ".exists(y, ",
    ".matches('a')",
    ".split('')",
    ".replace('a', 'bb')",
    ".join()",
    ".substring(1)",
    "quantity('1')",
    "semver('1.2.3')",
    "ip('::1')",
    "cidr('::/0')",
    "url('/a')",
    "duration('1s')",
    "timestamp(0)",
    ".sum()",
    ".format([1])",
    "optional.none()",
    ".orValue(1)",
    "parseJSON('[1]')",
    "has(",
    "dyn(",
];

fn compile_and_run(text: &str) -> Result<(), TestCaseError> {
    const STEPS: u64 = 5_000;
    let Ok(program) = Program::compile(text, &[("managedCluster", Type::Map)]) else { return Ok(()) };
    let cluster = json!({"metadata": {"name": "c1"}});
    let mut meter = Meter::new(STEPS);
    let answer = program.evaluate(&[Value::from(&cluster)], &NoScores, &mut meter);
    let is_exhausted = matches!(answer, Err(Failure::Exhausted));
    prop_assert_eq!(is_exhausted, meter.left() == 0 && is_exhausted);
    Ok(())
}
