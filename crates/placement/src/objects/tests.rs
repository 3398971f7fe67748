use serde_json::{Value as Json, json};

use super::*;
use crate::tree::Tree;

fn cluster(object: Json) -> ManagedCluster {
    serde_json::from_value(object).expect("any object is read")
}

#[test]
fn a_cluster_is_read_as_far_as_it_is_there() {
    let read = cluster(json!({
        "metadata": {"name": "c1", "labels": {"a": "b", "n": 1}, "deletionTimestamp": "2026-03-01T12:00:00Z"},
        "spec": {"taints": [{"key": "k", "effect": "NoSelect", "timeAdded": "2026-03-01T12:00:00Z"}, {"key": "l"}]},
        "status": {
            "clusterClaims": [{"name": "x", "value": "1"}, {"name": "x", "value": "2"}],
            "allocatable": {"cpu": "1500m", "memory": 1024}, "capacity": {"cpu": "2", "memory": "2Ki"},
        },
    }));
    assert_eq!((&*read.name, read.is_deleting, read.labels.len()), ("c1", true, 1));
    assert_eq!((read.claims.get("x"), read.cpu, read.memory), (Some("2"), Some(1.5), Some(1024.0)));
    assert_eq!(read.taints[0].time_added.map(OffsetDateTime::unix_timestamp), Some(1_772_366_400));
    assert_eq!((&*read.taints[1].key, read.taints[1].time_added), ("l", None));
}

#[test]
fn a_cluster_without_anything_is_one_all_the_same() {
    for object in [json!({}), json!(null), json!({"metadata": null, "spec": null, "status": null}), json!("x")] {
        let read = cluster(object.clone());
        assert_eq!((&*read.name, read.cpu, read.taints.len(), read.is_deleting), ("", None, 0, false), "{object}");
        let whole = json!({
            "metadata": {"creationTimestamp": null},
            "spec": {"hubAcceptsClient": false},
            "status": {"conditions": null, "version": {}},
        });
        assert_eq!(*read.object(), Tree::from(whole), "{object}");
    }
}

#[test]
fn a_resource_counts_only_with_both_of_its_amounts() {
    let cpu = |status: Json| cluster(json!({"status": status})).cpu;
    assert_eq!(cpu(json!({"allocatable": {"cpu": "1"}})), None);
    assert_eq!(cpu(json!({"capacity": {"cpu": "1"}})), None);
    assert_eq!(cpu(json!({"allocatable": {"cpu": "many"}, "capacity": {"cpu": "1"}})), None);
    assert_eq!(cpu(json!({"allocatable": {"cpu": "1"}, "capacity": {"cpu": "0"}})), Some(1.0));
}

#[test]
fn a_set_says_who_is_in_it() {
    let has = |selector: Json, labels: Json| {
        let set = json!({"metadata": {"name": "s"}, "spec": {"clusterSelector": selector}});
        let set: ManagedClusterSet = serde_json::from_value(set).unwrap();
        set.has(&cluster(json!({"metadata": {"labels": labels}})))
    };
    let labelled = json!({SET_LABEL: "s"});
    for kind in [json!({}), json!({"selectorType": "ExclusiveClusterSetLabel"})] {
        assert!(has(kind.clone(), labelled.clone()) && !has(kind, json!({SET_LABEL: "t"})));
    }
    let selecting = |selector: Json| json!({"selectorType": "LabelSelector", "labelSelector": selector});
    assert!(has(selecting(json!({})), json!({})) && !has(selecting(json!(null)), json!({})));
    assert!(has(selecting(json!({"matchLabels": {"a": "b"}})), json!({"a": "b"})));
    assert!(!has(json!({"selectorType": "Other"}), labelled.clone()));
    for wrong in [json!({"key": "a", "operator": "Near"}), json!({"key": "a", "operator": "NotIn", "values": []})] {
        assert!(!has(selecting(json!({"matchExpressions": [wrong]})), labelled.clone()));
    }
}

#[test]
fn scores_and_decisions_are_read() {
    let score: AddOnPlacementScore = serde_json::from_value(json!({
        "metadata": {"namespace": "c1", "name": "load"},
        "status": {"scores": [{"name": "a", "value": -3}, {"name": "b"}], "validUntil": "2026-03-01T12:00:00Z"},
    }))
    .unwrap();
    assert_eq!(
        (&*score.cluster, &*score.resource, score.scores[0].value, score.scores[1].value),
        ("c1", "load", -3, 0)
    );
    assert!(score.valid_until.is_some());
    let decision: PlacementDecision = serde_json::from_value(json!({
        "metadata": {"namespace": "team", "name": "p-decision-1", "labels": {PLACEMENT_LABEL: "p"}},
        "status": {"decisions": [{"clusterName": "c2", "reason": ""}, {"clusterName": "c1"}]},
    }))
    .unwrap();
    assert_eq!((decision.placement.as_deref(), decision.clusters), (Some("p"), vec!["c2".to_owned(), "c1".to_owned()]));
}

#[test]
fn no_expression_sees_who_wrote_a_cluster() {
    let read = ManagedCluster::from(json!({"metadata": {"name": "c", "managedFields": [{"manager": "m"}]}}));
    assert_eq!(read.object().get("metadata").and_then(|metadata| metadata.get("managedFields")), None);
}
