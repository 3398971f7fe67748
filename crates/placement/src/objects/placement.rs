//! `Placement` (`cluster.open-cluster-management.io/v1beta1`), as far as it is read.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value as Json;

use crate::selector::{LabelSelector, Requirement};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Placement {
    pub metadata: Metadata,
    pub spec: PlacementSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata {
    pub name: String,
    pub namespace: String,
    pub annotations: BTreeMap<String, String>,
    pub generation: i64,
    pub deletion_timestamp: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PlacementSpec {
    /// Empty for all that are bound.
    pub cluster_sets: Vec<String>,
    /// `None` for all that fit.
    pub number_of_clusters: Option<i64>,
    /// A cluster must match one, if there are any.
    pub predicates: Vec<ClusterPredicate>,
    pub prioritizer_policy: PrioritizerPolicy,
    /// Ignored, as upstream.
    pub spread_policy: SpreadPolicy,
    pub tolerations: Vec<Toleration>,
    pub decision_strategy: DecisionStrategy,
    /// Ignored, as upstream; `ClusterName` by default.
    pub sort_by: String,
    /// Ignored, as upstream; `1m` by default.
    pub score_rate_limit: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterPredicate {
    pub required_cluster_selector: ClusterSelector,
}

/// All three must match.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterSelector {
    pub label_selector: LabelSelector,
    pub claim_selector: ClusterClaimSelector,
    pub cel_selector: CelSelector,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterClaimSelector {
    pub match_expressions: Vec<Requirement>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CelSelector {
    pub cel_expressions: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PrioritizerPolicy {
    /// `Additive`, also if empty, or `Exact`.
    pub mode: String,
    pub configurations: Vec<PrioritizerConfig>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PrioritizerConfig {
    pub score_coordinate: Option<ScoreCoordinate>,
    /// −10 to 10 by the API, which defaults to 1.
    pub weight: i32,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ScoreCoordinate {
    /// `BuiltIn` or `AddOn`.
    #[serde(rename = "type")]
    pub kind: String,
    pub built_in: String,
    pub add_on: Option<AddOnScore>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AddOnScore {
    pub resource_name: String,
    pub score_name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SpreadPolicy {
    pub spread_constraints: Vec<Json>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Toleration {
    /// Empty for every key.
    pub key: String,
    /// `Equal`, also if empty, or `Exists`.
    pub operator: String,
    pub value: String,
    /// Empty for every effect.
    pub effect: String,
    /// From the taint's `timeAdded` on; `None` for ever.
    pub toleration_seconds: Option<i64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DecisionStrategy {
    pub group_strategy: GroupStrategy,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GroupStrategy {
    pub decision_groups: Vec<DecisionGroup>,
    /// A count, or a share like `25%` of all chosen clusters.
    pub clusters_per_decision_group: IntOrString,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DecisionGroup {
    pub group_name: String,
    /// Its expressions are not used.
    pub group_cluster_selector: ClusterSelector,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum IntOrString {
    Int(i64),
    String(String),
}

// === impl IntOrString ===

impl Default for IntOrString {
    fn default() -> Self {
        Self::Int(0)
    }
}
