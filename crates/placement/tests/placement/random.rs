use placement::conditions::Condition;
use placement::objects::PlacementDecision;
use placement::slices::{objects, statuses};
use placement::{Filter, Outcome};
use serde_json::{Value as Json, json};

use crate::tables::{assert_scores, left};
use crate::world::{World, moment, text, texts};

const FIRST: &str = include_str!("../vectors/ocm-random-placement-1.json");
const THIRD: &str = include_str!("../vectors/ocm-random-placement-3.json");
/// A Placement that still moves after this many runs will never settle.
const ROUNDS: usize = 20;

fn all() -> Vec<Json> {
    let of = |file: &str| serde_json::from_str::<Vec<Json>>(file).expect("JSON");
    let all: Vec<Json> = of(FIRST).into_iter().chain(of(THIRD)).collect();
    assert_eq!(all.len(), 80);
    all
}

fn told(outcome: &Outcome<'_>, placement: &str) -> Json {
    let groups = outcome.groups.as_deref().expect("decisions");
    let object = |object: &placement::slices::DecisionObject<'_>| {
        json!({
            "name": object.name, "groupIndex": object.group_index, "groupName": object.group_name,
            "clusters": object.clusters,
        })
    };
    objects(placement, groups).iter().map(object).collect()
}

fn status(outcome: &Outcome<'_>, placement: &str) -> Json {
    let groups = outcome.groups.as_deref().expect("decisions");
    let objects = objects(placement, groups);
    let entry = |group: &placement::slices::GroupStatus<'_>| {
        json!({
            "decisionGroupIndex": group.index, "decisionGroupName": group.name, "decisions": group.decisions,
            "clusterCount": group.cluster_count,
        })
    };
    statuses(groups, &objects).iter().map(entry).collect()
}

/// Compares texts exactly, except for the tokens that a parser expects: those are the parser's own.
fn assert_conditions(conditions: &[Condition], expect: &Json, id: &str) {
    let wanted = expect.as_array().expect("conditions");
    assert_eq!(conditions.len(), wanted.len(), "{id}");
    for (found, wanted) in conditions.iter().zip(wanted) {
        let status = if found.is_true { "True" } else { "False" };
        assert_eq!(found.kind, text(&wanted["type"]), "{id}");
        assert_eq!((status, found.reason), (text(&wanted["status"]), text(&wanted["reason"])), "{id}");
        assert_eq!(without_tokens(&found.message), without_tokens(text(&wanted["message"])), "{id}");
    }
}

fn without_tokens(message: &str) -> String {
    match (message.split_once(" expecting "), message.split_once("\n |")) {
        (Some((before, _)), Some((_, source))) => format!("{before}\n |{source}"),
        _ => message.to_owned(),
    }
}

#[test]
fn one_run_answers_as_upstream_does() {
    for case in all() {
        let (id, expect) = (text(&case["id"]), &case["expect"]);
        let placement = text(&case["placement"]["name"]);
        World::new(&case).run(|outcome| {
            let candidates: Vec<&str> = outcome.candidates.iter().map(|one| &*one.cluster.name).collect();
            assert_eq!(candidates, texts(&expect["candidates"]), "{id}");
            assert_conditions(&outcome.conditions, &expect["conditions"], id);
            if case.get("misconfigured").is_some() {
                assert!(outcome.groups.is_none() && outcome.conditions[0].is_true, "{id}");
                return;
            }
            assert_eq!(left(outcome, Filter::Predicate), texts(&expect["afterPredicates"]), "{id}");
            assert_eq!(left(outcome, Filter::TaintToleration), texts(&expect["afterTaints"]), "{id}");
            assert_scores(outcome, &expect["prioritizers"], id);
            let totals = outcome.feasible().map(|one| (one.cluster.name.clone(), json!(one.total)));
            assert_eq!(Json::Object(totals.collect()), expect["totals"], "{id}");
            assert_eq!(json!(outcome.chosen), expect["chosen"], "{id}");
            assert_eq!(json!(outcome.chosen.len()), expect["numberOfSelectedClusters"], "{id}");
            assert_eq!(json!(outcome.unscheduled), expect["unscheduled"], "{id}");
            assert_eq!(outcome.requeue_at, moment(&expect["requeueAt"]), "{id}");
            assert_eq!(told(outcome, placement), expect["objects"], "{id}");
            assert_eq!(status(outcome, placement), expect["decisionGroups"], "{id}");
        });
    }
}

/// Writes what a run found, as the controller would.
fn write(world: &mut World, told: &Json) {
    let (namespace, name) = (world.placement.namespace.clone(), world.placement.name.clone());
    let surplus: Vec<String> = world.decisions.of(&namespace, &name).map(|one| one.name.clone()).collect();
    for one in surplus {
        world.decisions.remove(&namespace, &one);
    }
    for object in told.as_array().expect("objects") {
        world.decisions.put(PlacementDecision {
            namespace: namespace.clone(),
            name: text(&object["name"]).to_owned(),
            placement: Some(name.clone()),
            clusters: texts(&object["clusters"]).into_iter().map(str::to_owned).collect(),
        });
    }
}

#[test]
fn runs_that_see_their_own_result_settle_as_upstream_does() {
    let mut settled = 0;
    for case in all().into_iter().filter(|case| case.get("misconfigured").is_none()) {
        let id = text(&case["id"]);
        let mut world = World::new(&case);
        let mut before = Json::Null;
        let mut is_still = false;
        for _ in 0..ROUNDS {
            let now = world.run(|outcome| told(outcome, text(&case["placement"]["name"])));
            is_still = now == before;
            if is_still {
                break;
            }
            write(&mut world, &now);
            before = now;
        }
        let expect = &case["expect"]["settled"];
        if expect.is_null() {
            assert!(!is_still, "{id} settles, and upstream does not");
            continue;
        }
        assert!(is_still, "{id} does not settle");
        // From labels, where an index is a text.
        for object in before.as_array_mut().expect("objects") {
            object["groupIndex"] = object["groupIndex"].to_string().into();
        }
        assert_eq!(before, *expect, "{id}");
        settled += 1;
    }
    assert!(settled > 50, "{settled} settled");
}
