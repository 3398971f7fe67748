//! Any Placement with any clusters, sets, scores and decisions: the choice is of its candidates, no
//! more than are asked for, each in one group, and does not depend on any order.
//!
//! Input: changes of good objects below `/object` (`sources::changed`).

use std::collections::BTreeSet;

use placement::index::{Decisions, Scores};
use placement::objects::{
    AddOnPlacementScore, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, PlacementDecision,
};
use placement::{Input, Prepared, prepared, schedule, slices};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::sources::changed;

pub const WORDS: &[&str] = &[
    "\n/object/placement/spec/numberOfClusters ",
    "\n/object/placement/spec/clusterSets/0 ",
    "\n/object/placement/spec/tolerations/0/",
    "\n/object/placement/spec/predicates/0/requiredClusterSelector/",
    "labelSelector/matchLabels/a b",
    "labelSelector/matchExpressions/0 {\"key\":\"a\",\"operator\":\"In\",\"values\":[\"b\"]}",
    "claimSelector/matchExpressions/0 {\"key\":\"c\",\"operator\":\"Exists\"}",
    "\n/object/placement/spec/prioritizerPolicy/configurations/0/",
    "scoreCoordinate {\"builtIn\":\"ResourceAllocatableCPU\"}",
    "scoreCoordinate {\"type\":\"AddOn\",\"addOn\":{\"resourceName\":\"s\",\"scoreName\":\"x\"}}",
    "weight -10",
    "mode Exact",
    "\n/object/placement/spec/decisionStrategy/groupStrategy/clustersPerDecisionGroup ",
    "\n/object/placement/spec/decisionStrategy/groupStrategy/decisionGroups/0 {\"groupName\":\"g\"}",
    "50%",
    "\n/object/clusters/0/spec/taints/0 {\"key\":\"t\",\"effect\":\"NoSelect\"}",
    "\n/object/clusters/1/metadata/",
    "\n/object/clusters/1/metadata/labels/cluster.open-cluster-management.io~1clusterset s",
    "\n/object/clusters/2/status/allocatable/cpu ",
    "\n/object/clusters/2/status/clusterClaims/0 ",
    "\n/object/sets/0/spec/clusterSelector/",
    "selectorType LabelSelector",
    "\n/object/bindings/0/",
    "\n/object/scores/0/status/scores/0/value ",
    "\n/object/scores/0/status/validUntil 2027-01-15T08:00:00Z",
    "\n/object/decisions/0/status/decisions/0/clusterName ",
    "tolerationSeconds 1",
    "timeAdded 2027-01-15T07:59:59Z",
    "9223372036854775807",
    "-1",
    "1e999",
    "100Ei",
    "0.1m",
    "null",
    "{}",
    "[]",
    "\"\"",
];

/// Unix time of 2027-01-15T08:00:00Z.
const NOW: i64 = 1_800_000_000;

fn good() -> Value {
    let set = json!({"cluster.open-cluster-management.io/clusterset": "s"});
    let cluster = |name: &str, cpu: &str| {
        let resources = json!({"cpu": cpu, "memory": "1Gi"});
        let mut labels = set.clone();
        labels["a"] = "b".into();
        json!({"metadata": {"name": name, "labels": labels},
            "status": {"allocatable": resources, "capacity": resources, "clusterClaims": [{"name": "c", "value": "d"}]}})
    };
    let score =
        json!({"metadata": {"namespace": "c1", "name": "s"}, "status": {"scores": [{"name": "x", "value": 5}]}});
    let decision = json!({"metadata": {"namespace": "n", "name": "p-decision-1",
        "labels": {"cluster.open-cluster-management.io/placement": "p"}}, "status": {"decisions": [{"clusterName": "c2"}]}});
    json!({"object": {
        "placement": {"metadata": {"namespace": "n", "name": "p", "generation": 1},
            "spec": {"numberOfClusters": 2, "clusterSets": ["s"]}},
        "clusters": [cluster("c1", "1"), cluster("c2", "2"), cluster("c3", "3500m"), cluster("c4", "1")],
        "sets": [{"metadata": {"name": "s"}}], "bindings": [{"metadata": {"namespace": "n", "name": "s"},
            "spec": {"clusterSet": "s"}}],
        "scores": [score], "decisions": [decision]}, "secret": {}})
}

pub fn check(input: &[u8]) {
    let Some(pair) = changed(good(), input) else { return };
    let object = &pair.object;
    let (placement, _) = prepared::read(&object["placement"]);
    let mut clusters: Vec<ManagedCluster> = all(&object["clusters"]);
    let mut names = BTreeSet::new();
    clusters.retain(|cluster| names.insert(cluster.name.clone()));
    let sets: Vec<ManagedClusterSet> = all(&object["sets"]);
    let bindings: Vec<ManagedClusterSetBinding> = all(&object["bindings"]);
    let (mut scores, mut decisions) = (Scores::default(), Decisions::default());
    for score in all::<AddOnPlacementScore>(&object["scores"]) {
        scores.put(score);
    }
    for decision in all::<PlacementDecision>(&object["decisions"]) {
        decisions.put(decision);
    }
    let (sets, bindings): (Vec<_>, Vec<_>) = (sets.iter().collect(), bindings.iter().collect());
    let mut clusters: Vec<_> = clusters.iter().collect();
    let run = |clusters: &[&ManagedCluster]| {
        let now = OffsetDateTime::from_unix_timestamp(NOW).expect("a time");
        let (placement, sets, bindings, scores, decisions) = (&placement, &sets, &bindings, &scores, &decisions);
        chosen(&Input { placement, sets, bindings, clusters, scores, decisions, decided_generation: None, now })
    };
    let first = run(&clusters);
    clusters.reverse();
    assert_eq!(run(&clusters), first, "it depends on the order of the clusters");
}

fn all<T: DeserializeOwned>(list: &Value) -> Vec<T> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(|one| serde_json::from_value(one.clone()).ok()).collect()
}

/// The chosen clusters, and their groups if they are known.
fn chosen(input: &Input<'_>) -> (Vec<String>, Option<Vec<Vec<String>>>) {
    let outcome = schedule(input);
    let placement: &Prepared = input.placement;
    let chosen: BTreeSet<&str> = outcome.chosen.iter().copied().collect();
    assert_eq!(chosen.len(), outcome.chosen.len(), "one is chosen twice");
    assert!(placement.number_of_clusters.is_none_or(|most| chosen.len() <= most));
    let feasible: BTreeSet<&str> = outcome.feasible().map(|candidate| candidate.cluster.name.as_str()).collect();
    assert!(chosen.is_subset(&feasible), "one is chosen that does not fit");
    let groups = outcome.groups.as_ref().map(|groups| {
        let mut grouped: Vec<&str> = groups.iter().flat_map(|group| group.clusters.iter().copied()).collect();
        grouped.sort_unstable();
        assert_eq!(grouped, chosen.iter().copied().collect::<Vec<_>>(), "each is in one group");
        let objects = slices::objects(&placement.name, groups);
        assert_eq!(objects.iter().map(|object| object.clusters.len()).sum::<usize>(), chosen.len());
        groups.iter().map(|group| group.clusters.iter().map(|name| (*name).to_owned()).collect()).collect()
    });
    (outcome.chosen.iter().map(|name| (*name).to_owned()).collect(), groups)
}
