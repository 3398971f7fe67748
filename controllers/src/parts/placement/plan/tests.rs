use time::Duration as Span;

use super::*;
use crate::parts::placement::kinds::Of;

const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;
const SET: &str = "cluster.open-cluster-management.io/clusterset";

fn put(world: &mut World, of: Of, version: u64, mut object: Value) {
    object["metadata"]["resourceVersion"] = version.to_string().into();
    world.put(of, object, NOW);
}

/// Set `s`, bound in `n`, with two clusters, and Placement `p` of generation 2.
fn world(spec: &Value) -> World {
    let mut world = World::default();
    put(&mut world, Of::Set, 1, json!({"metadata": {"name": "s"}}));
    put(&mut world, Of::Binding, 1, json!({"metadata": {"namespace": "n", "name": "s"}}));
    for name in ["c1", "c2"] {
        put(&mut world, Of::Cluster, 1, json!({"metadata": {"name": name, "labels": {SET: "s"}}}));
    }
    let metadata = json!({"namespace": "n", "name": "p", "uid": "u", "generation": 2});
    put(&mut world, Of::Placement, 1, json!({"metadata": metadata, "spec": spec}));
    world
}

fn due(world: &World) -> Box<Plan> {
    match step(world, &("n".into(), "p".into()), NOW, "now") {
        Step::Do(plan) => plan,
        _ => panic!("nothing is to be done"),
    }
}

fn labels(index: &str) -> Value {
    json!({"cluster.open-cluster-management.io/placement": "p",
        "cluster.open-cluster-management.io/decision-group-name": "",
        "cluster.open-cluster-management.io/decision-group-index": index})
}

/// A decision as this part would have written it.
fn decision(world: &World, clusters: &[&str]) -> Value {
    let owner = owner(world.placement(&("n".into(), "p".into())).unwrap());
    let list: Vec<Value> = clusters.iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
    json!({"metadata": {"namespace": "n", "name": "p-decision-1", "uid": "d", "labels": labels("0"),
        "ownerReferences": [owner]}, "status": {"decisions": list}})
}

#[test]
fn what_is_missing_is_created_with_labels_and_owner() {
    let plan = due(&world(&json!({})));
    let [change] = &plan.changes[..] else { panic!("one decision") };
    assert_eq!((&*change.name, &change.version), ("p-decision-1", &None));
    assert_eq!(change.list.as_deref(), Some(&["c1".to_owned(), "c2".to_owned()][..]));
    let metadata = change.metadata.as_ref().unwrap();
    assert_eq!(metadata["labels"], labels("0"));
    assert_eq!(metadata["ownerReferences"][0]["uid"], "u");
    assert_eq!(metadata["ownerReferences"][0]["controller"], true);
    let (version, status) = plan.status.as_ref().unwrap();
    assert_eq!((version.as_str(), &status["numberOfSelectedClusters"]), ("1", &json!(2)));
}

#[test]
fn what_is_right_is_not_written_and_of_the_rest_only_what_differs() {
    let mut world = world(&json!({}));
    let right = decision(&world, &["c1", "c2"]);
    put(&mut world, Of::Decision, 5, right.clone());
    assert!(!due(&world).writes_decisions());
    let mut labelled = right.clone();
    labelled["metadata"]["labels"]["more"] = "x".into();
    put(&mut world, Of::Decision, 6, labelled);
    let plan = due(&world);
    assert!(plan.changes[0].list.is_none());
    assert_eq!(plan.changes[0].metadata.as_ref().unwrap()["labels"]["more"], Value::Null);
    let mut reasoned = right.clone();
    reasoned["status"]["decisions"][0]["reason"] = "because".into();
    let by_hand = json!({"manager": "kubectl-edit", "fieldsV1": {"f:status": {"f:decisions": {}}}});
    reasoned["metadata"]["managedFields"] = json!([by_hand]);
    put(&mut world, Of::Decision, 7, reasoned);
    // A person edited it before, so this is the second edit.
    let mut later = right;
    later["metadata"]["ownerReferences"] = json!([{"uid": "other", "controller": true}, {"uid": "friend"}]);
    put(&mut world, Of::Decision, 8, later);
    let known = world.placement(&("n".into(), "p".into())).unwrap();
    assert!(known.foreign_writes.wait(NOW).is_some(), "not put back each time at once");
    let change = change(
        world.held(&("n".into(), "p-decision-1".into())),
        known,
        &DecisionObject { name: "p-decision-1".into(), group_index: 0, group_name: "", clusters: &["c1", "c2"] },
    );
    let owners = change.unwrap().metadata.unwrap()["ownerReferences"].clone();
    assert_eq!(
        (owners.as_array().unwrap().len(), &owners[0]["uid"], &owners[1]["uid"]),
        (2, &json!("friend"), &json!("u"))
    );
}

#[test]
fn a_decision_that_is_none_of_its_own_is_surplus() {
    let mut world = world(&json!({"numberOfClusters": 1}));
    let mut foreign = decision(&world, &["c9"]);
    foreign["metadata"]["name"] = "foreign".into();
    put(&mut world, Of::Decision, 5, foreign);
    let plan = due(&world);
    assert_eq!((plan.surplus[0].name.as_str(), plan.surplus[0].version.as_str()), ("foreign", "5"));
    assert_eq!(plan.clusters, 1);
}

#[test]
fn one_that_cannot_be_evaluated_keeps_its_decisions() {
    let mut world = world(&json!({"tolerations": [{"operator": "Equal", "value": "x"}]}));
    let held = decision(&world, &["c2"]);
    put(&mut world, Of::Decision, 5, held);
    let plan = due(&world);
    assert!(plan.is_misconfigured && !plan.writes_decisions());
    assert_eq!(plan.clusters, 1, "they count still");
    let status = &plan.status.as_ref().unwrap().1;
    assert_eq!(status["conditions"][0]["status"], "True", "{status}");
}

#[test]
fn one_that_cannot_be_read_says_so() {
    let plan = due(&world(&json!({"numberOfClusters": "many"})));
    assert!(plan.is_misconfigured && !plan.writes_decisions());
    let message = plan.status.as_ref().unwrap().1["conditions"][0]["message"].clone();
    assert!(message.as_str().unwrap().contains("many"), "{message}");
}

#[test]
fn a_score_that_ends_is_a_timer() {
    let add_on = json!({"type": "AddOn", "addOn": {"resourceName": "r", "scoreName": "s"}});
    let policy = json!({"mode": "Exact", "configurations": [{"scoreCoordinate": add_on, "weight": 1}]});
    let mut world = world(&json!({"prioritizerPolicy": policy}));
    let score = |cluster: &str, until: &str| json!({"metadata": {"namespace": cluster, "name": "r"}, "status": {"validUntil": until, "scores": []}});
    put(&mut world, Of::Score, 1, score("c1", "1970-01-01T00:01:00Z"));
    put(&mut world, Of::Score, 1, score("c2", "1970-01-01T00:00:30Z"));
    put(&mut world, Of::Score, 1, score("elsewhere", "1970-01-01T00:00:01Z"));
    assert_eq!(due(&world).again, Some(NOW + Span::seconds(30)));
}

/// The lists of clusters while `c1` is gone and after `change`: during the hold, and at its end.
fn held(change: impl FnOnce(&mut World)) -> [Vec<String>; 2] {
    let mut world = world(&json!({}));
    let right = decision(&world, &["c1", "c2"]);
    put(&mut world, Of::Decision, 5, right);
    world.hold(NOW);
    world.remove(Of::Cluster, &(String::new(), "c1".to_owned()), None, NOW);
    change(&mut world);
    [NOW, NOW + Span::minutes(10)].map(|now| {
        let Step::Do(plan) = step(&world, &("n".into(), "p".into()), now, "now") else { panic!("nothing") };
        let is_held = now == NOW && plan.held.is_some();
        assert!(!is_held || plan.again == Some(NOW + Span::minutes(10)), "it looks again then");
        let list = plan.changes.first().and_then(|change| change.list.clone());
        list.unwrap_or_else(|| vec!["c1".to_owned(), "c2".to_owned()])
    })
}

fn edited(world: &mut World, spec: &Value) {
    let metadata = json!({"namespace": "n", "name": "p", "uid": "u", "generation": 3});
    put(world, Of::Placement, 7, json!({"metadata": metadata, "spec": spec}));
}

#[test]
fn a_hold_keeps_what_left_by_a_removal_until_it_ends() {
    assert_eq!(held(|_| {}), [vec!["c1", "c2"], vec!["c2"]]);
}

#[test]
fn a_hold_lets_through_whatever_else_changes() {
    let added = |world: &mut World| {
        put(world, Of::Cluster, 9, json!({"metadata": {"name": "c3", "labels": {SET: "s"}}}));
    };
    assert_eq!(held(added), [vec!["c1", "c2", "c3"], vec!["c2", "c3"]], "who comes");
    let tainted = |world: &mut World| {
        let taints = json!([{"key": "k", "effect": "NoSelect"}]);
        put(
            world,
            Of::Cluster,
            9,
            json!({"metadata": {"name": "c2", "labels": {SET: "s"}}, "spec": {"taints": taints}}),
        );
    };
    assert_eq!(held(tainted), [vec!["c1"], vec![]], "a taint");
    let selector = json!({"labelSelector": {"matchLabels": {"a": "b"}}});
    let spec = json!({"predicates": [{"requiredClusterSelector": selector}]});
    assert_eq!(held(|world| edited(world, &spec)), [vec!["c1"], vec![]], "other predicates");
    assert_eq!(held(|world| edited(world, &json!({"numberOfClusters": 0}))), [vec![] as Vec<&str>, vec![]]);
}

#[test]
fn a_run_aside_comes_to_the_same() {
    let world = RwLock::new(world(&json!({})));
    let Step::Do(plan) = step_aside(&world, &("n".into(), "p".into()), NOW, "now") else { panic!("nothing") };
    let other = due(&world.read());
    assert_eq!(plan.changes[0].list, other.changes[0].list);
    assert_eq!((plan.inputs, plan.status.unwrap()), (other.inputs, other.status.unwrap()));
}

/// A quick run does not wait behind long runs.
#[test]
fn a_run_says_what_it_took() {
    let took = |expression: &str| {
        let selector = json!({"celSelector": {"celExpressions": [expression]}});
        let world = RwLock::new(world(&json!({"predicates": [{"requiredClusterSelector": selector}]})));
        let key = ("n".into(), "p".into());
        assert!(!world.read().placement(&key).unwrap().took_few_steps(), "nobody knows yet");
        let Step::Do(plan) = step_aside(&world, &key, NOW, "now") else { panic!("nothing") };
        world.write().placement_mut(&key).unwrap().steps = Some(plan.steps);
        let is_few = world.read().placement(&key).unwrap().took_few_steps();
        (plan.steps, is_few)
    };
    let (cheap, is_few) = took("managedCluster.metadata.name == 'c1'");
    assert!(cheap > 0 && is_few, "{cheap}");
    let ten = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]";
    let nested = format!("{ten}.all(a, {ten}.all(b, {ten}.all(c, {ten}.all(d, a + b + c + d >= 0))))");
    let (costly, is_few) = took(&nested);
    assert!(costly > 100_000 && !is_few, "{costly}");
}

#[test]
fn one_that_is_switched_off_is_left() {
    let mut world = world(&json!({}));
    let annotations = json!({"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"});
    let metadata = json!({"namespace": "n", "name": "p", "uid": "u", "generation": 2, "annotations": annotations});
    put(&mut world, Of::Placement, 2, json!({"metadata": metadata, "spec": {}}));
    assert!(matches!(step(&world, &("n".into(), "p".into()), NOW, "now"), Step::Rest));
}
