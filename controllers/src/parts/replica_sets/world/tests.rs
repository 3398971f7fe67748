use serde_json::json;

use super::*;

fn now() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_772_366_400).unwrap()
}

fn key(name: &str) -> Key {
    ("team".to_owned(), name.to_owned())
}

fn set(name: &str, version: u64, placement: &str, rules: &Value) -> Value {
    let template = json!({"workload": {"manifests": []}, "manifestConfigs": [{"conditionRules": rules}]});
    json!({"metadata": {"namespace": "team", "name": name, "uid": name, "resourceVersion": version.to_string()},
        "spec": {"manifestWorkTemplate": template, "placementRefs": [{"name": placement}]}})
}

fn work(set: &str, version: u64) -> Value {
    json!({"metadata": {"namespace": "c1", "name": "w", "resourceVersion": version.to_string(), "generation": 1,
        "labels": {SET_LABEL: format!("team.{set}")}}})
}

fn woken(keys: Woken) -> Vec<String> {
    keys.into_iter().map(|(_, name)| name).collect()
}

#[test]
fn a_set_is_woken_by_what_it_can_see_and_by_nothing_twice() {
    let mut world = World::new(false);
    assert_eq!(woken(world.put(Of::Set, set("a.b", 1, "p", &json!([])), now())), ["a.b"]);
    world.put(Of::Set, set("other", 1, "q", &json!([])), now());
    let placement = |selected: u64, version: u64| {
        json!({"metadata": {"namespace": "team", "name": "p", "resourceVersion": version.to_string()},
            "status": {"numberOfSelectedClusters": selected}})
    };
    assert_eq!(woken(world.put(Of::Placement, placement(1, 1), now())), ["a.b"]);
    assert!(world.put(Of::Placement, placement(1, 2), now()).is_empty(), "it says the same");
    assert!(world.put(Of::Placement, placement(5, 1), now()).is_empty(), "an older one");
    let decision = |cluster: &str, version: u64| {
        json!({"metadata": {"namespace": "team", "name": "p-decision-1", "resourceVersion": version.to_string(),
            "labels": {"cluster.open-cluster-management.io/placement": "p"}},
            "status": {"decisions": [{"clusterName": cluster}]}})
    };
    assert_eq!(woken(world.put(Of::Decision, decision("c1", 1), now())), ["a.b"]);
    assert!(world.put(Of::Decision, decision("c1", 2), now()).is_empty());
    assert_eq!(woken(world.put(Of::Work, work("a.b", 1), now())), ["a.b"], "its name has a dot");
    assert!(world.put(Of::Work, work("a.b", 1), now()).is_empty(), "the echo of our own write");
    assert_eq!(woken(world.put(Of::Work, work("other", 2), now())), ["a.b", "other"], "it changes hands");
    assert_eq!(woken(world.remove(Of::Work, &("c1".into(), "w".into()), Some("1"), now())), Vec::<String>::new());
    assert_eq!(woken(world.remove(Of::Work, &("c1".into(), "w".into()), Some("2"), now())), ["other"]);
}

#[test]
fn what_a_list_lacks_is_gone_unless_it_was_written_since() {
    let mut world = World::new(false);
    world.put(Of::Set, set("a", 5, "p", &json!([])), now());
    world.put(Of::Set, set("b", 5, "p", &json!([])), now());
    world.begin_list(Of::Set);
    world.put_listed(Of::Set, set("a", 3, "q", &json!([])), now());
    world.put(Of::Set, set("c", 9, "p", &json!([])), now());
    world.end_list(Of::Set, now());
    assert_eq!(world.set(&key("a")).unwrap().set.placements[0].name, "q", "the hub was restored");
    assert!(world.set(&key("b")).is_none() && world.set(&key("c")).is_some());
}

#[test]
fn how_far_a_work_is_follows_from_it_where_nobody_says() {
    let progressing = |world: &World| {
        let work = world.works(&key("a")).next().unwrap();
        delivery::condition::find(&work.conditions, "Progressing").map(|one| one.reason.clone())
    };
    let mut world = World::new(false);
    // In any order of arrival.
    world.put(Of::Work, work("a", 1), now());
    assert_eq!(progressing(&world), None);
    world.put(Of::Set, set("a", 1, "p", &json!([])), now());
    assert_eq!(progressing(&world).as_deref(), Some("Applying"));
    world.put(Of::Set, set("a", 2, "p", &json!([{"type": "CEL", "condition": "Progressing"}])), now());
    assert_eq!(progressing(&world), None, "a rule is to say it");
    world.put(Of::Set, set("a", 3, "p", &json!([])), now());
    let mut told = work("a", 2);
    told["status"]["conditions"] = json!([{"type": "Progressing", "status": "True", "reason": "Theirs"}]);
    world.put(Of::Work, told, now());
    assert_eq!(progressing(&world).as_deref(), Some("Theirs"));
    let mut upstreams = World::new(true);
    upstreams.put(Of::Set, set("a", 1, "p", &json!([])), now());
    upstreams.put(Of::Work, work("a", 1), now());
    assert_eq!(progressing(&upstreams), None, "--rollout-needs-rules");
}

#[test]
fn since_when_a_work_is_as_far_as_it_is_outlives_a_restart() {
    let since = |work: Value| {
        let mut world = World::new(false);
        world.put(Of::Set, set("a", 1, "p", &json!([])), now());
        world.put(Of::Work, work, now());
        world.works(&key("a")).next().unwrap().existing().since
    };
    let mut told = work("a", 2);
    let at = |time: &str| json!(format!("2026-03-01T{time}Z"));
    let condition = |kind: &str, status: &str, time: &str| {
        let time = at(time);
        json!({"type": kind, "status": status, "observedGeneration": 1, "lastTransitionTime": time})
    };
    let hours = |before: i64| Some(now() - time::Duration::hours(before));
    told["status"]["conditions"] =
        json!([condition("Applied", "True", "07:00:00"), condition("Available", "True", "09:00:00")]);
    assert_eq!(since(told.clone()), hours(3), "it has succeeded since it is available, not since it is seen");
    told["metadata"]["managedFields"] =
        json!([{"manager": "m", "time": at("10:00:00"), "fieldsV1": {"f:spec": {"f:workload": {}}}}]);
    assert_eq!(since(told.clone()), hours(2), "its conditions are older than the template");
    told["status"]["conditions"] =
        json!([condition("Applied", "True", "07:00:00"), condition("Available", "False", "11:00:00")]);
    assert_eq!(since(told.clone()), hours(1), "it is progressing since it is not available");
    told["status"]["conditions"][1]["lastTransitionTime"] = at("19:00:00");
    assert_eq!(since(told), hours(0), "a clock that is ahead lengthens no wait");
}

#[test]
fn what_is_no_clusters_name_is_named_by_no_decision() {
    let mut world = World::new(false);
    let decision = json!({"metadata": {"namespace": "team", "name": "p-decision-1", "resourceVersion": "1",
            "labels": {"cluster.open-cluster-management.io/placement": "p"}},
        "status": {"decisions": [{"clusterName": "c 1"}, {"clusterName": "../c2"}, {"clusterName": "c3"}]}});
    world.put(Of::Decision, decision, now());
    assert_eq!(world.groups(&key("p")).unwrap()[0].clusters, ["c3"]);
}
