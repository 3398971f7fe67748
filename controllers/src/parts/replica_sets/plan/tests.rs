mod leaving;

use serde_json::{Value, json};

use super::*;
use crate::parts::replica_sets::kinds::Of;

fn now() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_772_366_400).unwrap()
}

fn key() -> Key {
    ("team".to_owned(), "app".to_owned())
}

fn set(data: &str, references: &Value) -> Value {
    json!({"metadata": {"namespace": "team", "name": "app", "uid": "s", "resourceVersion": "1", "generation": 1,
            "finalizers": [FINALIZER]},
        "spec": {"manifestWorkTemplate": template(data), "placementRefs": references}})
}

fn template(data: &str) -> Value {
    json!({"workload": {"manifests": [{"kind": "ConfigMap", "data": {"a": data}}]}})
}

fn all(name: &str) -> Value {
    json!([{"name": name, "rolloutStrategy": {"type": "All"}}])
}

fn on_hub(cluster: &str, name: &str, placement: &str, data: &str, created: u8) -> Value {
    json!({"metadata": {"namespace": cluster, "name": name, "uid": format!("{cluster}-{name}"), "generation": 1,
            "resourceVersion": "1", "creationTimestamp": format!("2026-03-01T11:00:0{created}Z"),
            "labels": {"work.open-cluster-management.io/manifestworkreplicaset": "team.app",
                "work.open-cluster-management.io/placementname": placement}},
        "spec": template(data)})
}

/// A Placement that counts `selected` clusters and whose decisions name `clusters`.
fn place(world: &mut World, name: &str, selected: usize, clusters: &[&str]) {
    let list: Vec<Value> = clusters.iter().map(|name| json!({"clusterName": name})).collect();
    let placement = json!({"metadata": {"namespace": "team", "name": name, "resourceVersion": "1"},
        "status": {"numberOfSelectedClusters": selected, "decisionGroups": [{}]}});
    let decision = json!({"metadata": {"namespace": "team", "name": format!("{name}-decision-1"),
            "resourceVersion": "1", "labels": {"cluster.open-cluster-management.io/placement": name,
                "cluster.open-cluster-management.io/decision-group-index": "0"}},
        "status": {"decisions": list}});
    world.put(Of::Placement, placement, now());
    world.put(Of::Decision, decision, now());
}

fn world(references: &Value, works: &[Value]) -> World {
    let mut world = World::new(false);
    world.put(Of::Set, set("1", references), now());
    for work in works {
        world.put(Of::Work, work.clone(), now());
    }
    world
}

fn planned(world: &World) -> Plan {
    planned_at(world, now() + SETTLING)
}

fn planned_at(world: &World, moment: OffsetDateTime) -> Plan {
    match step(world, &key(), moment) {
        Step::Deploy(_, plan) => plan,
        other => panic!("{other:?}"),
    }
}

fn created(plan: &Plan) -> Vec<&str> {
    let is_new = |due: &&Due| due.change == Change::Create;
    plan.due.iter().filter(is_new).map(|due| due.cluster.as_str()).collect()
}

fn removed(plan: &Plan) -> Vec<(&str, &str)> {
    plan.surplus.iter().map(|one| (one.cluster.as_str(), one.name.as_str())).collect()
}

#[test]
fn each_chosen_cluster_gets_a_work_and_the_others_lose_theirs() {
    // The work of the dropped cluster has another template: upstream would leave it.
    let mut world = world(
        &all("p"),
        &[on_hub("c1", "app1", "p", "1", 1), on_hub("c2", "app2", "p", "0", 1), on_hub("c3", "x", "p", "0", 1)],
    );
    place(&mut world, "p", 3, &["c1", "c2", "c4"]);
    let plan = planned(&world);
    assert_eq!((created(&plan), removed(&plan)), (vec!["c4"], vec![("c3", "x")]));
    let patched = plan.due.iter().find(|due| due.cluster == "c2").unwrap();
    assert!(matches!(&patched.change, Change::Patch { name, .. } if name == "app2"), "{patched:?}");
    assert_eq!(plan.due.len(), 2, "what is so is not written");
}

#[test]
fn nothing_goes_while_decisions_name_fewer_than_are_counted() {
    let mut world = world(&all("p"), &[on_hub("c1", "app1", "p", "1", 1)]);
    place(&mut world, "p", 1, &[]);
    let plan = planned(&world);
    assert!(plan.surplus.is_empty() && plan.is_held, "its decisions may be gone by mistake");
    place_again(&mut world, 0);
    assert_eq!(removed(&planned(&world)), [("c1", "app1")]);
}

#[test]
fn nothing_goes_before_its_placement_has_counted() {
    let mut world = world(&all("p"), &[on_hub("c1", "app1", "p", "1", 1)]);
    // As after a deletion and another apply, or after a restore, until it is scheduled.
    world.put(Of::Placement, json!({"metadata": {"namespace": "team", "name": "p", "resourceVersion": "1"}}), now());
    let plan = planned(&world);
    assert!(plan.surplus.is_empty() && plan.is_held, "{plan:?}");
    place_again(&mut world, 0);
    assert_eq!(removed(&planned(&world)), [("c1", "app1")]);
}

#[test]
fn a_cluster_that_moves_between_two_decisions_keeps_its_work() {
    let mut world = world(&all("p"), &[on_hub("c1", "a", "p", "1", 1), on_hub("c2", "b", "p", "1", 1)]);
    // Two are counted and two are named, and c2 is about to follow.
    place(&mut world, "p", 2, &["c1", "c3"]);
    let plan = planned_at(&world, now() + SETTLING - time::Duration::MILLISECOND);
    assert_eq!((removed(&plan), plan.again), (vec![], Some(now() + SETTLING)));
    assert_eq!(created(&plan), ["c3"], "what is to come does not wait");
    world.begin_list(Of::Decision);
    let late = now() + time::Duration::HOUR;
    let plan = planned_at(&world, late);
    assert_eq!((removed(&plan), plan.again), (vec![], Some(late + SETTLING)), "decisions are being listed");
    let decision = json!({"metadata": {"namespace": "team", "name": "p-decision-2", "resourceVersion": "1", "labels":
            {"cluster.open-cluster-management.io/placement": "p"}}, "status": {"decisions": [{"clusterName": "c9"}]}});
    world.put(Of::Decision, decision, late);
    world.end_list(Of::Decision, late);
    let plan = planned_at(&world, late);
    assert_eq!((removed(&plan).len(), plan.is_held), (0, true), "a decision is gone");
}

fn place_again(world: &mut World, selected: usize) {
    let placement = json!({"metadata": {"namespace": "team", "name": "p", "resourceVersion": "2"},
        "status": {"numberOfSelectedClusters": selected}});
    assert_eq!(world.put(Of::Placement, placement, now()).into_iter().collect::<Vec<_>>(), [key()]);
}

#[test]
fn of_two_works_for_one_cluster_the_older_stays() {
    let mut world = world(&all("p"), &[on_hub("c1", "a", "p", "1", 9), on_hub("c1", "b", "p", "1", 1)]);
    place(&mut world, "p", 1, &["c1"]);
    assert_eq!(removed(&planned(&world)), [("c1", "a")]);
}

#[test]
fn of_two_works_of_the_same_second_that_stays_which_was_applied() {
    let mut applied = on_hub("c1", "b", "p", "1", 1);
    applied["status"]["conditions"] = json!([{"type": "Applied", "status": "True", "observedGeneration": 1}]);
    let mut world = world(&all("p"), &[on_hub("c1", "a", "p", "1", 1), applied]);
    place(&mut world, "p", 1, &["c1"]);
    assert_eq!(removed(&planned(&world)), [("c1", "a")]);
}

#[test]
fn a_plan_has_no_copy_of_the_template() {
    let mut world = world(&all("p"), &[on_hub("c1", "a", "p", "0", 1)]);
    place(&mut world, "p", 2, &["c1", "c2"]);
    let Step::Deploy(set, plan) = step(&world, &key(), now()) else { panic!("no plan") };
    assert_eq!(plan.due.len(), 2);
    assert!(!format!("{plan:?}").contains("ConfigMap"), "it is as large as a template for each cluster");
    // A later template needs a later plan, which decides again how many clusters may have it.
    world.put(Of::Set, self::set("2", &all("p")), now());
    assert_eq!(*set.template, template("1"));
}

#[test]
fn placements_that_choose_the_same_cluster_have_a_work_each() {
    let references = json!([{"name": "p", "rolloutStrategy": {"type": "All"}},
        {"name": "q", "rolloutStrategy": {"type": "All"}}, {"name": "p", "rolloutStrategy": {"type": "Odd"}}]);
    let mut world = world(&references, &[on_hub("c1", "a", "p", "1", 1), on_hub("c1", "r", "gone", "1", 1)]);
    place(&mut world, "p", 1, &["c1"]);
    place(&mut world, "q", 1, &["c1"]);
    let plan = planned(&world);
    assert_eq!((created(&plan), removed(&plan)), (vec!["c1"], vec![("c1", "r")]));
    assert_eq!((plan.shared.len(), plan.verdicts.len()), (1, 2), "a second entry of a name does not count");
    assert!(plan.verdicts.iter().all(|verdict| verdict.error.is_none()));
}

#[test]
fn what_cannot_be_read_takes_nothing_away() {
    let odd =
        json!([{"name": "p", "rolloutStrategy": {"type": "Progressive", "progressive": {"maxConcurrency": "x"}}}]);
    let mut one = world(&odd, &[on_hub("c1", "a", "p", "1", 1), on_hub("c9", "b", "p", "1", 1)]);
    place(&mut one, "p", 1, &["c1"]);
    let plan = planned(&one);
    assert!(plan.surplus.is_empty() && plan.due.is_empty());
    assert!(plan.verdicts[0].error.as_deref().is_some_and(|why| why.contains("maxConcurrency")), "{plan:?}");
    let unreadable = world(&json!([{"name": 5}]), &[on_hub("c1", "a", "p", "1", 1)]);
    assert!(matches!(step(&unreadable, &key(), now()), Step::Refuse(Refusal::Unreadable(_))));
    let missing = world(&all("p"), &[on_hub("c1", "a", "p", "1", 1)]);
    let plan = planned(&missing);
    assert!(plan.is_missing && plan.surplus.is_empty());
}

#[test]
fn the_end_waits_for_works_where_it_is_told_to() {
    let ending = |policy: &str| {
        let mut set = set("1", &all("p"));
        set["metadata"]["deletionTimestamp"] = json!("2026-03-01T11:00:00Z");
        set["spec"]["cascadeDeletionPolicy"] = json!(policy);
        let mut world = World::new(false);
        world.put(Of::Set, set, now());
        world.put(Of::Work, on_hub("c1", "a", "p", "1", 1), now());
        match step(&world, &key(), now()) {
            Step::End { surplus, release } => (surplus.len(), release.map(|release| release.all)),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ending("Background"), (1, Some(Vec::new())));
    assert_eq!(ending("Foreground"), (1, None));
}

#[test]
fn a_set_begins_with_its_finalizer() {
    let mut world = World::new(false);
    let mut bare = set("1", &all("p"));
    bare["metadata"]["finalizers"] = json!(["theirs"]);
    world.put(Of::Set, bare, now());
    match step(&world, &key(), now()) {
        Step::Begin(finalizers) => assert_eq!(finalizers.all, ["theirs", FINALIZER]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_strategy_lets_some_wait_and_says_when_to_look_again() {
    let slow = json!([{"name": "p", "rolloutStrategy": {"type": "Progressive",
        "progressive": {"maxConcurrency": 1, "minSuccessTime": "30s", "progressDeadline": "None"}}}]);
    let mut world = world(&slow, &[]);
    place(&mut world, "p", 2, &["c1", "c2"]);
    assert_eq!(created(&planned(&world)), ["c1"]);
    let mut done = on_hub("c1", "a", "p", "1", 1);
    let condition = |kind: &str| json!({"type": kind, "status": "True", "observedGeneration": 1});
    done["status"]["conditions"] = json!([condition("Applied"), condition("Available")]);
    world.put(Of::Work, done, now());
    // Nobody reports `Progressing`: it has succeeded since it was seen.
    let plan = planned(&world);
    assert_eq!((created(&plan).len(), plan.again), (0, Some(now() + time::Duration::seconds(30))));
    let Step::Deploy(_, later) = step(&world, &key(), now() + time::Duration::seconds(30)) else { panic!("no plan") };
    assert_eq!(created(&later), ["c2"]);
}
