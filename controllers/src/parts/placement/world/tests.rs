use serde_json::json;

use super::*;
use crate::calls::MANAGER;

const SET: &str = "cluster.open-cluster-management.io/clusterset";
const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

/// A hub whose changes each get a higher version.
#[derive(Default)]
pub struct Hub {
    pub world: World,
    version: u64,
}

impl Hub {
    /// Returns the Placements, as `namespace/name`, that an object wakes.
    pub fn put(&mut self, of: Of, mut object: Value) -> Vec<String> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        told(self.world.put(of, object, NOW))
    }

    pub fn remove(&mut self, of: Of, namespace: &str, name: &str) -> Vec<String> {
        told(self.world.remove(of, &(namespace.to_owned(), name.to_owned()), None, NOW))
    }

    /// Sets `a` and `b` bound in `one`, `a` alone in `two`; a cluster in each set.
    pub fn filled() -> Self {
        let mut hub = Self::default();
        for set in ["a", "b"] {
            hub.put(Of::Set, json!({"metadata": {"name": set}}));
            hub.put(Of::Cluster, cluster(&format!("c-{set}"), set));
        }
        for (namespace, set) in [("one", "a"), ("one", "b"), ("two", "a")] {
            hub.put(Of::Binding, json!({"metadata": {"namespace": namespace, "name": set}}));
        }
        hub.put(Of::Placement, placement("one", "all", &json!({})));
        hub.put(Of::Placement, placement("one", "only-b", &json!({"clusterSets": ["b"]})));
        hub.put(Of::Placement, placement("two", "all", &json!({})));
        hub
    }
}

fn told(woken: Woken) -> Vec<String> {
    woken.into_iter().map(|(namespace, name)| format!("{namespace}/{name}")).collect()
}

pub fn cluster(name: &str, set: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {SET: set}}})
}

pub fn placement(namespace: &str, name: &str, spec: &Value) -> Value {
    json!({"metadata": {"namespace": namespace, "name": name, "uid": "u", "generation": 1}, "spec": spec})
}

pub fn decision(name: &str, placement: &str, clusters: &[&str], manager: &str) -> Value {
    let decisions: Vec<Value> = clusters.iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
    json!({
        "metadata": {"namespace": "one", "name": name, "uid": "d",
            "labels": {"cluster.open-cluster-management.io/placement": placement},
            "managedFields": [{"manager": manager, "fieldsV1": {"f:status": {"f:decisions": {}}}}]},
        "status": {"decisions": decisions},
    })
}

#[test]
fn a_cluster_wakes_who_can_see_it() {
    let mut hub = Hub::filled();
    let mut tainted = cluster("c-b", "b");
    tainted["spec"] = json!({"taints": [{"key": "k", "effect": "NoSelect"}]});
    assert_eq!(hub.put(Of::Cluster, tainted), ["one/all", "one/only-b"]);
    assert_eq!(hub.put(Of::Cluster, cluster("c-b", "b")), ["one/all", "one/only-b"]);
    assert!(hub.put(Of::Cluster, cluster("c-b", "b")).is_empty(), "nothing else than its version");
    let mut beats = cluster("c-b", "b");
    beats["status"] = json!({"conditions": [{"type": "Available"}]});
    assert!(hub.put(Of::Cluster, beats).is_empty(), "nobody looks at that");
    assert_eq!(hub.put(Of::Cluster, cluster("c-b", "a")), ["one/all", "one/only-b", "two/all"], "out and in");
    assert_eq!(hub.remove(Of::Cluster, "", "c-b"), ["one/all", "two/all"]);
    assert!(hub.put(Of::Cluster, cluster("c-c", "c")).is_empty(), "of no set");
}

#[test]
fn a_run_looks_at_clusters_of_its_sets_and_at_those_that_it_has() {
    let mut hub = Hub::filled();
    hub.put(Of::Cluster, cluster("c-c", "c"));
    hub.put(Of::Decision, decision("only-b-decision-1", "only-b", &["c-c", "c-b", "c-gone"], MANAGER));
    let looked_at = |hub: &Hub, namespace: &str, name: &str| {
        let known = hub.world.placement(&(namespace.to_owned(), name.to_owned())).unwrap();
        let names = |input: &Input<'_>| input.clusters.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
        let found = hub.world.with_input(known, NOW, names);
        assert_eq!(hub.world.snapshot(known).with_input(NOW, names), found);
        found.join(" ")
    };
    assert_eq!(looked_at(&hub, "one", "all"), "c-a c-b");
    assert_eq!(looked_at(&hub, "one", "only-b"), "c-b c-c", "its tolerations may end for both");
    assert_eq!(looked_at(&hub, "two", "all"), "c-a");
    let selecting = json!({"selectorType": "LabelSelector", "labelSelector": {}});
    hub.put(Of::Set, json!({"metadata": {"name": "b"}, "spec": {"clusterSelector": selecting}}));
    assert_eq!(looked_at(&hub, "one", "only-b"), "c-a c-b c-c", "any may be in the set");
}

#[test]
fn only_expressions_see_all_of_a_cluster() {
    let mut hub = Hub::filled();
    let expression = json!({"requiredClusterSelector": {"celSelector": {"celExpressions": ["true"]}}});
    hub.put(Of::Placement, placement("two", "cel", &json!({"predicates": [expression]})));
    let mut beats = cluster("c-a", "a");
    beats["status"] = json!({"version": {"kubernetes": "v1.35"}});
    assert_eq!(hub.put(Of::Cluster, beats.clone()), ["two/cel"]);
    beats["metadata"]["generation"] = 7.into();
    beats["metadata"]["managedFields"] = json!([{"manager": "m"}]);
    assert!(hub.put(Of::Cluster, beats.clone()).is_empty(), "what every write changes");
    beats["metadata"]["annotations"] = json!({"a": "b"});
    assert_eq!(hub.put(Of::Cluster, beats), ["two/cel"]);
}

#[test]
fn sets_and_bindings_wake_those_who_take_from_them() {
    let mut hub = Hub::filled();
    hub.put(Of::Placement, placement("one", "only-a", &json!({"clusterSets": ["a"]})));
    let all = ["one/all", "one/only-a", "one/only-b"];
    assert_eq!(hub.remove(Of::Set, "", "b"), all, "each tells how many sets are bound");
    let mut set = json!({"metadata": {"name": "b"}});
    assert_eq!(hub.put(Of::Set, set.clone()), all);
    set["status"] = json!({"conditions": []});
    assert!(hub.put(Of::Set, set.clone()).is_empty(), "what is said of it is no matter");
    set["spec"] = json!({"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}});
    assert_eq!(hub.put(Of::Set, set), ["one/all", "one/only-b"]);
    assert_eq!(hub.remove(Of::Binding, "one", "b"), all);
    assert!(hub.put(Of::Set, json!({"metadata": {"name": "b"}})).is_empty(), "bound nowhere");
    // A binding takes effect once its set exists.
    assert_eq!(hub.put(Of::Binding, json!({"metadata": {"namespace": "two", "name": "late"}})), ["two/all"]);
    assert_eq!(hub.put(Of::Set, json!({"metadata": {"name": "late"}})), ["two/all"]);
}

#[test]
fn ten_thousand_bindings_wake_nobody_who_is_not_there() {
    let mut hub = Hub::filled();
    for number in 0..10_000 {
        let binding = json!({"metadata": {"namespace": format!("n{number}"), "name": "b"}});
        assert!(hub.put(Of::Binding, binding).is_empty());
    }
    assert_eq!(hub.put(Of::Cluster, cluster("c-new", "b")), ["one/all", "one/only-b"]);
    assert_eq!(hub.world.keys(Of::Binding).len(), 10_003);
}

#[test]
fn of_a_thousand_placements_those_run_that_see_the_cluster() {
    let mut hub = Hub::default();
    for number in 0..100 {
        let (namespace, set) = (format!("n{number}"), format!("s{number}"));
        hub.put(Of::Set, json!({"metadata": {"name": set}}));
        hub.put(Of::Binding, json!({"metadata": {"namespace": namespace, "name": set}}));
        hub.put(Of::Cluster, cluster(&format!("c{number}"), &set));
        for name in 0..10 {
            hub.put(Of::Placement, placement(&namespace, &format!("p{name}"), &json!({})));
        }
    }
    let mut flipped = cluster("c42", "s42");
    flipped["metadata"]["labels"]["more"] = "x".into();
    let woken = hub.put(Of::Cluster, flipped);
    assert!(woken.len() == 10 && woken.iter().all(|key| key.starts_with("n42/")), "{woken:?}");
}

#[test]
fn scores_wake_those_who_ask_for_them() {
    let mut hub = Hub::filled();
    let configuration =
        json!({"scoreCoordinate": {"type": "AddOn", "addOn": {"resourceName": "r", "scoreName": "s"}}, "weight": 1});
    hub.put(
        Of::Placement,
        placement("one", "scored", &json!({"prioritizerPolicy": {"configurations": [configuration]}})),
    );
    let score = |value: i64| json!({"metadata": {"namespace": "c-b", "name": "r"}, "status": {"scores": [{"name": "s", "value": value}]}});
    assert_eq!(hub.put(Of::Score, score(1)), ["one/scored"]);
    assert!(hub.put(Of::Score, score(1)).is_empty());
    assert_eq!(hub.put(Of::Score, score(2)), ["one/scored"]);
    assert_eq!(hub.remove(Of::Score, "c-b", "r"), ["one/scored"]);
    assert!(hub.remove(Of::Score, "c-b", "r").is_empty());
}

#[test]
fn decisions_wake_their_own_placement_alone() {
    let mut hub = Hub::filled();
    assert_eq!(hub.put(Of::Decision, decision("all-decision-1", "all", &["c-a"], "m")), ["one/all"]);
    assert!(hub.put(Of::Decision, decision("all-decision-1", "all", &["c-a"], "m")).is_empty(), "no difference");
    assert_eq!(hub.put(Of::Decision, decision("all-decision-1", "only-b", &["c-a"], "m")), ["one/all", "one/only-b"]);
    assert_eq!(hub.remove(Of::Decision, "one", "all-decision-1"), ["one/only-b"]);
    assert!(
        hub.put(Of::Decision, decision("x-decision-1", "gone", &[], "m")).is_empty(),
        "of a Placement that is not there"
    );
}

#[test]
fn what_is_older_than_our_own_write_is_not_looked_at() {
    let mut hub = Hub::filled();
    let at = |version: &str, clusters: &[&str]| {
        let mut object = decision("all-decision-1", "all", clusters, MANAGER);
        object["metadata"]["resourceVersion"] = version.into();
        object
    };
    let key = ("one".to_owned(), "all-decision-1".to_owned());
    hub.world.put(Of::Decision, at("100", &["c-a"]), NOW);
    assert!(hub.world.put(Of::Decision, at("99", &[]), NOW).is_empty());
    assert!(hub.world.put(Of::Decision, at("100", &["c-a"]), NOW).is_empty());
    assert!(hub.world.remove(Of::Decision, &key, Some("98"), NOW).is_empty(), "an earlier one of its name");
    assert_eq!(hub.world.held(&key).unwrap().clusters, ["c-a"]);
    assert!(!hub.world.remove(Of::Decision, &key, Some("101"), NOW).is_empty());
}

#[test]
fn what_a_list_says_counts_whatever_its_version() {
    let mut hub = Hub::filled();
    let at = |name: &str, version: &str, clusters: &[&str]| {
        let mut object = decision(name, "all", clusters, MANAGER);
        object["metadata"]["resourceVersion"] = version.into();
        object
    };
    let key = |name: &str| ("one".to_owned(), name.to_owned());
    for name in ["d1", "d2"] {
        hub.world.put(Of::Decision, at(name, "100", &["c-a"]), NOW);
    }
    // The hub was restored from an older copy.
    hub.world.begin_list(Of::Decision);
    hub.world.put(Of::Decision, at("d2", "101", &["c-b"]), NOW);
    hub.world.put(Of::Decision, at("d3", "102", &[]), NOW);
    assert!(!hub.world.put_listed(Of::Decision, at("d1", "50", &[]), NOW).is_empty());
    assert!(hub.world.put_listed(Of::Decision, at("d2", "50", &[]), NOW).is_empty(), "written since it began");
    assert!(hub.world.held(&key("d1")).unwrap().clusters.is_empty());
    assert_eq!(hub.world.held(&key("d2")).unwrap().clusters, ["c-b"]);
    assert_eq!(hub.world.unlisted(Of::Decision, &HashSet::from([key("d1")])), [] as [Key; 0], "both were written");
    hub.world.begin_list(Of::Decision);
    assert_eq!(hub.world.unlisted(Of::Decision, &HashSet::from([key("d1"), key("d2")])), [key("d3")]);
    let mut own = placement("one", "all", &json!({"numberOfClusters": 1}));
    (own["metadata"]["generation"], own["metadata"]["resourceVersion"]) = (2.into(), "1".into());
    hub.world.begin_list(Of::Placement);
    assert!(!hub.world.put_listed(Of::Placement, own, NOW).is_empty());
}

#[test]
fn what_we_write_ourselves_is_no_news() {
    let mut hub = Hub::filled();
    let key = ("one".to_owned(), "all-decision-1".to_owned());
    hub.world.begin(&key, Some(&["c-a".to_owned()]));
    assert!(hub.put(Of::Decision, decision("all-decision-1", "all", &[], MANAGER)).is_empty(), "created");
    assert!(hub.put(Of::Decision, decision("all-decision-1", "all", &["c-a"], MANAGER)).is_empty(), "listed");
    let by_hand = decision("all-decision-1", "all", &[], "kubectl-edit");
    assert_eq!(hub.put(Of::Decision, by_hand), ["one/all"], "not so what somebody else writes meanwhile");
    assert!(hub.remove(Of::Decision, "one", "all-decision-1").is_empty());
    hub.world.end(&key);
    let mut own = placement("one", "all", &json!({}));
    let status = json!({"numberOfSelectedClusters": 1});
    hub.world.placement_mut(&("one".to_owned(), "all".to_owned())).unwrap().intended = status.clone();
    own["status"] = status;
    assert!(hub.put(Of::Placement, own.clone()).is_empty());
    own["status"] = json!({});
    assert_eq!(hub.put(Of::Placement, own), ["one/all"]);
}

#[test]
fn who_else_writes_is_known_by_the_managed_fields() {
    let mut hub = Hub::filled();
    let key = ("one".to_owned(), "all".to_owned());
    let other =
        |hub: &Hub| hub.world.placement(&key).unwrap().foreign_writes.other(NOW).map(|(other, _)| other.to_owned());
    hub.put(Of::Decision, decision("all-decision-1", "all", &["c-a"], "upstream"));
    assert_eq!(other(&hub), None, "what was there is taken over");
    hub.put(Of::Decision, decision("all-decision-1", "all", &["c-b"], MANAGER));
    hub.put(Of::Decision, decision("all-decision-1", "all", &["c-a"], "kubectl-edit"));
    assert_eq!(other(&hub), None, "a person's hand");
    hub.put(Of::Decision, decision("all-decision-1", "all", &["c-b"], "upstream"));
    assert_eq!(other(&hub).as_deref(), Some("upstream"));
    let mut changed = placement("one", "all", &json!({"numberOfClusters": 1}));
    changed["metadata"]["generation"] = 2.into();
    hub.put(Of::Placement, changed);
    assert_eq!(other(&hub), None, "somebody cares for the Placement");
}

#[test]
fn a_status_that_others_write_is_not_fought_over() {
    let mut hub = Hub::filled();
    let key = ("one".to_owned(), "all".to_owned());
    let told = |number: u64, manager: &str, more: &[Value]| {
        let mut object = placement("one", "all", &json!({}));
        object["status"] = json!({"numberOfSelectedClusters": number, "conditions": more});
        object["metadata"]["managedFields"] =
            json!([{"manager": manager, "time": "1", "fieldsV1": {"f:status": {"f:conditions": {}}}}]);
        object
    };
    hub.world.placement_mut(&key).unwrap().intended = json!({"numberOfSelectedClusters": 1, "conditions": []});
    assert!(hub.put(Of::Placement, told(1, MANAGER, &[])).is_empty(), "our own");
    let theirs = [json!({"type": "Theirs", "status": "True"})];
    assert!(hub.put(Of::Placement, told(1, "friend", &theirs)).is_empty(), "a condition of theirs");
    let foreign_writes = |hub: &Hub| {
        let foreign_writes = &hub.world.placement(&key).unwrap().foreign_writes;
        (foreign_writes.wait(NOW).is_some(), foreign_writes.other(NOW).map(|(other, _)| other.to_owned()))
    };
    assert_eq!(hub.put(Of::Placement, told(2, "kubectl-edit", &[])), ["one/all"]);
    assert_eq!(foreign_writes(&hub), (false, None), "put back at once");
    hub.put(Of::Placement, told(3, "kubectl-edit", &[]));
    assert_eq!(foreign_writes(&hub), (true, None), "then later");
    hub.put(Of::Placement, told(4, "upstream", &[]));
    assert_eq!(foreign_writes(&hub).1.as_deref(), Some("upstream"), "and another controller is left alone");
}

#[test]
fn a_list_without_another_manager_is_not_ours_by_that() {
    let mut hub = Hub::filled();
    let key = ("one".to_owned(), "all-decision-1".to_owned());
    hub.world.begin(&key, Some(&["c-a".to_owned(), "c-b".to_owned()]));
    hub.put(Of::Decision, decision("all-decision-1", "all", &["c-a", "c-b"], MANAGER));
    hub.world.end(&key);
    let mut removed = decision("all-decision-1", "all", &[], MANAGER);
    removed["metadata"]["managedFields"] = json!([{}]);
    removed["status"] = Value::Null;
    assert_eq!(hub.put(Of::Decision, removed), ["one/all"], "its status was removed");
    let sent = decision("all-decision-1", "all", &["c-a", "c-b"], MANAGER);
    assert!(hub.put(Of::Decision, sent.clone()).is_empty(), "ours, though its call ended before");
    let forged = decision("all-decision-1", "all", &["c-a"], MANAGER);
    assert_eq!(hub.put(Of::Decision, forged), ["one/all"], "by somebody who calls himself as we do");
    assert!(hub.world.placement(&("one".into(), "all".into())).unwrap().foreign_writes.wait(NOW).is_some());
}

/// The former leader used the same manager's name.
#[test]
fn what_was_written_while_this_replica_waited_is_no_contest() {
    let mut hub = Hub::filled();
    for clusters in [&[][..], &["c-a"], &["c-b"], &["c-a", "c-b"]] {
        hub.put(Of::Decision, decision("all-decision-1", "all", clusters, MANAGER));
    }
    let key = ("one".to_owned(), "all".to_owned());
    let waits = |hub: &Hub| hub.world.placement(&key).unwrap().foreign_writes.wait(NOW).is_some();
    assert!(waits(&hub));
    let all = hub.world.take_over(NOW);
    assert!(all.len() == 3 && !waits(&hub), "{all:?}");
}

#[test]
fn a_placement_is_looked_at_for_what_it_says_and_not_for_its_labels() {
    let mut hub = Hub::filled();
    let mut own = placement("one", "all", &json!({}));
    own["metadata"]["labels"] = json!({"l": "v"});
    assert!(hub.put(Of::Placement, own.clone()).is_empty());
    own["metadata"]["annotations"] =
        json!({"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"});
    assert_eq!(hub.put(Of::Placement, own.clone()), ["one/all"]);
    own["status"] = json!({"numberOfSelectedClusters": 7});
    assert_eq!(hub.put(Of::Placement, own.clone()), ["one/all"], "somebody wrote its status");
    own["metadata"]["uid"] = "another".into();
    assert_eq!(hub.put(Of::Placement, own), ["one/all"]);
    assert_eq!(hub.world.keys(Of::Placement).len(), 3);
    hub.remove(Of::Placement, "one", "all");
    assert!(hub.world.placement(&("one".into(), "all".into())).is_none());
}

mod hold;

#[test]
fn of_a_cluster_that_is_too_large_what_administrators_decide_counts() {
    let mut hub = Hub::filled();
    let mut put = |seen: Value| told(hub.world.put_large_cluster(seen, NOW));
    let mut same = cluster("c-a", "a");
    same["spec"]["taints"] = json!([]);
    assert!(put(same).is_empty() && put(cluster("unknown", "a")).is_empty());
    let unread = json!({"metadata": {"name": "c-a", "labels": null}, "spec": {"taints": null}});
    assert!(put(unread).is_empty(), "what cannot be read changes nothing");
    let mut tainted = cluster("c-a", "a");
    tainted["spec"]["taints"] = json!([{"key": "k", "effect": "NoSelect"}]);
    assert_eq!(put(tainted), ["one/all", "two/all"]);
    assert_eq!(put(cluster("c-a", "b")), ["one/all", "one/only-b", "two/all"]);
    let mut going = cluster("c-a", "b");
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(put(going), ["one/all", "one/only-b"]);
}
