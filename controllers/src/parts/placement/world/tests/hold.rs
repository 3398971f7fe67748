use super::*;

/// Nine clusters of set `a`, bound in `one`. A decision names all but the last.
fn decided() -> Hub {
    let mut hub = Hub { world: World::limited(2), ..Hub::default() };
    hub.put(Of::Set, json!({"metadata": {"name": "a"}}));
    hub.put(Of::Binding, json!({"metadata": {"namespace": "one", "name": "a"}}));
    hub.put(Of::Placement, placement("one", "all", &json!({})));
    for number in 0..9 {
        hub.put(Of::Cluster, cluster(&format!("c{number}"), "a"));
    }
    let names: Vec<String> = (0..8).map(|number| format!("c{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    hub.put(Of::Decision, decision("all-decision-1", "all", &names, MANAGER));
    hub
}

fn leave(hub: &mut Hub, name: &str) {
    let mut leaving = cluster(name, "a");
    leaving["metadata"]["deletionTimestamp"] = "1970-01-01T00:00:00Z".into();
    hub.put(Of::Cluster, leaving);
}

#[test]
fn many_that_go_at_once_are_held_whether_they_are_gone_or_on_their_way() {
    let mut hub = decided();
    leave(&mut hub, "c0");
    hub.remove(Of::Cluster, "", "c0");
    hub.remove(Of::Cluster, "", "unknown");
    hub.remove(Of::Cluster, "", "c1");
    assert_eq!(hub.world.holds("one", NOW), None, "one is counted once");
    hub.remove(Of::Cluster, "", "c8");
    assert_eq!(hub.world.holds("one", NOW), None, "no decision names it");
    leave(&mut hub, "c2");
    assert!(hub.world.holds("one", NOW).is_some() && hub.world.holds("two", NOW).is_some());
}

#[test]
fn one_that_goes_again_and_again_is_one() {
    let mut hub = decided();
    for _ in 0..9 {
        hub.remove(Of::Cluster, "", "c0");
        hub.put(Of::Cluster, cluster("c0", "a"));
        hub.remove(Of::Binding, "one", "a");
        hub.put(Of::Binding, json!({"metadata": {"namespace": "one", "name": "a"}}));
    }
    assert_eq!(hub.world.holds("one", NOW), None);
}

#[test]
fn bindings_of_a_namespace_hold_that_one_alone_and_only_if_they_take_something_away() {
    let mut hub = decided();
    for namespace in ["one", "two"] {
        for number in 0..9 {
            let name = format!("s{number}");
            let selector = json!({"selectorType": "LabelSelector", "labelSelector": {}});
            hub.put(Of::Set, json!({"metadata": {"name": name}, "spec": {"clusterSelector": selector}}));
            hub.put(Of::Binding, json!({"metadata": {"namespace": namespace, "name": name}}));
        }
    }
    for number in 0..9 {
        hub.remove(Of::Binding, "two", &format!("s{number}"));
    }
    assert_eq!(hub.world.holds("two", NOW), None, "nothing is decided there");
    for number in 0..3 {
        hub.remove(Of::Binding, "one", &format!("s{number}"));
    }
    assert!(hub.world.holds("one", NOW).is_some());
    assert_eq!(hub.world.holds("two", NOW), None, "another namespace");
}

#[test]
fn who_is_decided_and_missing_from_the_first_lists_counts() {
    let mut hub = decided();
    hub.put(Of::Decision, decision("all-decision-1", "all", &["c0", "gone1", "gone2"], MANAGER));
    hub.world.count_missing(NOW);
    assert_eq!(hub.world.holds("one", NOW), None, "as many as may go");
    hub.put(Of::Decision, decision("all-decision-1", "all", &["c0", "gone1", "gone2", "gone3"], MANAGER));
    hub.world.count_missing(NOW);
    assert!(hub.world.holds("one", NOW).is_some());
}

/// A writer of decisions in one namespace cannot hold another namespace.
#[test]
fn only_decisions_that_may_lose_clusters_count() {
    let ghosts = ["gone1", "gone2", "gone3", "gone4"];
    let counted_by = |of: &str, spec: Value, at_rest: bool, manager: &str| {
        let mut hub = decided();
        let mut object = placement("one", "theirs", &spec);
        if at_rest {
            object["metadata"]["annotations"] =
                json!({"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"});
        }
        hub.put(Of::Placement, object);
        hub.put(Of::Decision, decision("made-up", of, &ghosts, manager));
        hub.world.take_over(NOW);
        hub.world.holds("one", NOW).is_some()
    };
    let counted = |of: &str, spec: Value, at_rest: bool| counted_by(of, spec, at_rest, MANAGER);
    for (manager, is_counted) in [(MANAGER, true), ("placement", true), ("kubectl-edit", false), ("curl", false)] {
        assert_eq!(counted_by("theirs", json!({}), false, manager), is_counted, "{manager}");
    }
    assert!(!counted("nobodys", json!({}), false), "there is no such Placement");
    assert!(!counted("", json!({}), false), "of no Placement");
    assert!(!counted("theirs", json!({"numberOfClusters": "x"}), false), "one that cannot be read");
    let toleration = json!({"tolerations": [{"operator": "Equal", "value": "v"}]});
    assert!(!counted("theirs", toleration, false), "one that cannot be evaluated keeps its decisions");
    assert!(!counted("theirs", json!({}), true), "one that is not scheduled keeps its decisions");
    // They do not count when clusters go, either.
    let mut hub = decided();
    hub.remove(Of::Decision, "one", "all-decision-1");
    hub.put(Of::Decision, decision("made-up", "nobodys", &["c1", "c2", "c3", "c4"], MANAGER));
    for name in ["c1", "c2", "c3", "c4"] {
        hub.remove(Of::Cluster, "", name);
    }
    assert_eq!(hub.world.holds("one", NOW), None);
}

#[test]
fn what_a_person_wrote_counts_once_a_run_came_to_the_same() {
    let all = ("one".to_owned(), "all".to_owned());
    let goes = |hub: &mut Hub| {
        for name in ["c1", "c2", "c3", "c4"] {
            hub.remove(Of::Cluster, "", name);
        }
        hub.remove(Of::Binding, "one", "a");
        hub.remove(Of::Set, "", "a");
        hub.world.holds("one", NOW).is_some()
    };
    let by_hand = |clusters: &[&str]| decision("all-decision-1", "all", clusters, "kubectl-edit");
    let written = |then: &dyn Fn(&mut Hub)| {
        let mut hub = decided();
        hub.put(Of::Decision, by_hand(&["c0", "c1", "c2", "c3", "c4"]));
        then(&mut hub);
        goes(&mut hub)
    };
    let inputs = |hub: &Hub| hub.world.placement(&all).unwrap().inputs;
    assert!(!written(&|_| {}));
    assert!(written(&|hub| hub.world.confirm(&all, inputs(hub))));
    assert!(!written(&|hub| hub.world.confirm(&all, inputs(hub) + 1)), "it changed meanwhile");
    let again = |hub: &mut Hub| {
        hub.world.confirm(&all, inputs(hub));
        hub.put(Of::Decision, by_hand(&["c1", "c2", "c3", "c4"]));
    };
    assert!(!written(&again), "it was edited since");
    let touched = |hub: &mut Hub| {
        hub.world.confirm(&all, inputs(hub));
        let mut same = by_hand(&["c0", "c1", "c2", "c3", "c4"]);
        same["metadata"]["labels"]["l"] = "v".into();
        hub.put(Of::Decision, same);
    };
    assert!(written(&touched), "its list is the same");
    assert!(goes(&mut decided()), "ours counts from the beginning");
}

#[test]
fn a_cluster_left_by_a_removal_if_it_would_be_there_without() {
    let mut hub = decided();
    let key = ("one".to_owned(), "all".to_owned());
    let left = |hub: &Hub| hub.world.has_left(hub.world.placement(&key).unwrap(), "c1", NOW);
    let binding = json!({"metadata": {"namespace": "one", "name": "a"}});
    assert!(!left(&hub), "it is there");
    hub.put(Of::Cluster, cluster("c1", "b"));
    assert!(!left(&hub), "it was moved to another set");
    hub.put(Of::Cluster, cluster("c1", "a"));
    hub.remove(Of::Binding, "one", "a");
    assert!(left(&hub), "its binding went");
    hub.remove(Of::Set, "", "a");
    assert!(left(&hub), "and its set");
    hub.put(Of::Binding, binding);
    assert!(left(&hub), "the set is away");
    hub.put(Of::Placement, {
        let mut other = placement("one", "all", &json!({"clusterSets": ["b"]}));
        other["metadata"]["generation"] = 2.into();
        other
    });
    assert!(!left(&hub), "the Placement asks for others");
    leave(&mut hub, "c1");
    assert!(left(&hub), "it is on its way out");
}
