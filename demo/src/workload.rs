//! A workload that goes where the scheduler of Placements says: to two of the clusters that answer.
//!
//! The choice is `placement`'s, as on a hub. The hub itself is missing here, and with it the
//! controllers: this process keeps the objects that they would write (sets, taints, decisions), and
//! where they would deliver a `ManifestWork`, a pod is applied through the gateway.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use placement::index::{Decisions, Scores};
use placement::objects::{ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, PlacementDecision};
use placement::{Input, prepared, schedule};
use serde_json::{Value, json};
use time::OffsetDateTime;

/// Name of the Placement, and of the pod.
pub const NAME: &str = "traveller";
const NAMESPACE: &str = "default";
const SET: &str = "demo";
const COPIES: usize = 2;
/// Set on clusters that do not answer, as on a hub.
const UNREACHABLE: &str = "cluster.open-cluster-management.io/unreachable";

/// The clusters that have it.
#[derive(Debug, Default)]
pub struct Workload {
    chosen: Mutex<BTreeSet<String>>,
}

/// The changes that a choice makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moves {
    /// All that have it now, by name.
    pub chosen: Vec<String>,
    pub come: Vec<String>,
    pub go: Vec<String>,
}

// === impl Workload ===

impl Workload {
    /// Chooses among `clusters`, each with whether it answers, and keeps the decision.
    pub fn choose(&self, clusters: &[(String, bool)]) -> Moves {
        let mut decided = self.chosen.lock();
        let chosen = chosen(clusters, &decided);
        let moves = Moves {
            chosen: chosen.iter().cloned().collect(),
            come: chosen.difference(&decided).cloned().collect(),
            go: decided.difference(&chosen).cloned().collect(),
        };
        *decided = chosen;
        moves
    }
}

fn chosen(clusters: &[(String, bool)], decided: &BTreeSet<String>) -> BTreeSet<String> {
    let (placement, _) = prepared::read(&json!({"metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {"numberOfClusters": COPIES}}));
    let set = ManagedClusterSet::from(json!({"metadata": {"name": SET}}));
    let binding = ManagedClusterSetBinding::from(json!({"metadata": {"name": SET, "namespace": NAMESPACE},
        "spec": {"clusterSet": SET}}));
    let clusters: Vec<ManagedCluster> =
        clusters.iter().map(|(name, answers)| ManagedCluster::from(cluster(name, *answers))).collect();
    let mut decisions = Decisions::default();
    let list: Vec<Value> = decided.iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
    decisions.put(PlacementDecision::from(json!({"metadata": {"name": format!("{NAME}-decision-1"),
        "namespace": NAMESPACE, "labels": {"cluster.open-cluster-management.io/placement": NAME}},
        "status": {"decisions": list}})));
    let input = Input {
        placement: &placement,
        sets: &[&set],
        bindings: &[&binding],
        clusters: &clusters.iter().collect::<Vec<_>>(),
        scores: &Scores::default(),
        decisions: &decisions,
        decided_generation: None,
        now: OffsetDateTime::now_utc(),
    };
    schedule(&input).chosen.into_iter().map(str::to_owned).collect()
}

fn cluster(name: &str, answers: bool) -> Value {
    let taints = if answers { json!([]) } else { json!([{"key": UNREACHABLE, "effect": "NoSelect"}]) };
    json!({"metadata": {"name": name, "labels": {"cluster.open-cluster-management.io/clusterset": SET}},
        "spec": {"taints": taints}})
}

/// The applied object.
pub fn pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": NAME, "labels": {"app": NAME}},
        "spec": {"containers": [{"name": "main", "image": "example/traveller:1.0"}]}})
}

/// Its path on a member, for server-side apply.
pub fn path() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/pods/{NAME}?fieldManager=demo")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_leaves_a_cluster_that_is_lost_and_stays_where_it_went() {
        let workload = Workload::default();
        let fleet = |answers: [bool; 3]| ["berlin", "lima", "osaka"].map(str::to_owned).into_iter().zip(answers);
        let choose = |answers| workload.choose(&fleet(answers).collect::<Vec<_>>());
        let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let moves = |chosen: &[&str], come: &[&str], go: &[&str]| Moves {
            chosen: names(chosen),
            come: names(come),
            go: names(go),
        };
        let both = ["berlin", "lima"];
        assert_eq!(choose([true; 3]), moves(&both, &both, &[]));
        assert_eq!(choose([true, false, true]), moves(&["berlin", "osaka"], &["osaka"], &["lima"]));
        assert_eq!(choose([true; 3]), moves(&["berlin", "osaka"], &[], &[]), "it flaps");
    }
}
