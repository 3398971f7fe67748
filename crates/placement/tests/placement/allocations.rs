//! Heap allocations of a choice among many clusters.

use std::hint::black_box;

use serde_json::{Value as Json, json};

use crate::world::World;

const CLUSTERS: usize = 1000;

/// A thousand clusters for three predicates, `third` being the last, and four prioritizers.
fn world(third: &Json) -> World {
    let cluster = |at: usize| {
        json!({
            "name": format!("c{at:04}"), "kubernetes": format!("v1.{}.1", 28 + at % 8),
            "labels": {"env": if at.is_multiple_of(3) { "prod" } else { "dev" }, "zone": format!("z{}", at % 30)},
            "claims": [{"name": "platform", "value": if at.is_multiple_of(2) { "AWS" } else { "GCP" }}],
            "allocatable": {"cpu": "4", "memory": format!("{}Gi", 8 + at % 256)},
            "capacity": {"cpu": "8", "memory": "264Gi"},
        })
    };
    let platform = json!([{"key": "platform", "operator": "In", "values": ["AWS"]}]);
    let selectors = [
        json!({"labelSelector": {"matchLabels": {"env": "prod"}}}),
        json!({"claimSelector": {"matchExpressions": platform}}),
        third.clone(),
    ];
    let coordinates = ["Balance", "Steady", "ResourceAllocatableCPU", "ResourceAllocatableMemory"];
    let configured = |name| json!({"scoreCoordinate": {"type": "BuiltIn", "builtIn": name}, "weight": 1});
    World::new(&json!({
        "placement": {"namespace": "team", "name": "place", "spec": {
            "numberOfClusters": 300,
            "predicates": selectors.map(|selector| json!({"requiredClusterSelector": selector})),
            "prioritizerPolicy": {"mode": "Exact", "configurations": coordinates.map(configured)},
        }},
        "clusters": (0..CLUSTERS).map(cluster).collect::<Vec<_>>(),
        "decisions": [{"namespace": "team", "name": "place-decision-1", "placement": "place",
            "clusters": (0..100).map(|at| format!("c{at:04}")).collect::<Vec<_>>()}],
    }))
}

/// Allocations of one choice.
fn allocations(world: &World) -> u64 {
    let info = allocation_counter::measure(|| world.run(|outcome| _ = black_box(outcome.chosen.len())));
    assert_eq!(world.run(|outcome| outcome.chosen.len()), 300);
    info.count_total
}

#[test]
fn labels_and_claims_are_looked_at_where_they_are() {
    let exists = json!({"labelSelector": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}});
    let taken = allocations(&world(&exists));
    assert!(taken <= 100, "{taken} allocations, which are to be of the lists alone");
}

#[test]
fn expressions_take_less_than_one_for_each_cluster() {
    let expression = "managedCluster.status.version.kubernetes.startsWith('v1.') && 'zone' in \
                      managedCluster.metadata.labels && managedCluster.metadata.labels.zone != 'nowhere'";
    let taken = allocations(&world(&json!({"celSelector": {"celExpressions": [expression]}})));
    let limit = u64::try_from(CLUSTERS).expect("few");
    assert!(taken <= limit, "{taken} allocations for {limit} clusters");
}
