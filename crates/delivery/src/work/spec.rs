//! `ManifestWork` as written, and its meaning to the machinery.

mod conversion;

use serde::Deserialize;
use serde_json::Value as Json;

use crate::identity::Identity;

pub use self::conversion::InvalidSpec;

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ManifestWorkSpec {
    pub workload: ManifestsTemplate,
    pub delete_option: Option<DeleteOption>,
    pub manifest_configs: Vec<ManifestConfig>,
    pub executor: Option<ManifestWorkExecutor>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ManifestsTemplate {
    pub manifests: Vec<Json>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeleteOption {
    /// `Foreground`, `Orphan` or `SelectivelyOrphan`.
    pub propagation_policy: String,
    #[serde(rename = "selectivelyOrphans")]
    pub selectively_orphan: Option<SelectivelyOrphan>,
    pub ttl_seconds_after_finished: Option<i64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SelectivelyOrphan {
    pub orphaning_rules: Vec<Identity>,
}

/// Settings for the objects that its identifier matches, with `*` in name and namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ManifestConfig {
    pub resource_identifier: Identity,
    pub feedback_rules: Vec<FeedbackRule>,
    pub update_strategy: Option<UpdateStrategy>,
    pub condition_rules: Vec<ConditionRule>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FeedbackRule {
    /// `WellKnownStatus` or `JSONPaths`.
    #[serde(rename = "type")]
    pub kind: String,
    pub json_paths: Vec<JsonPath>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct JsonPath {
    pub name: String,
    pub version: String,
    pub path: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConditionRule {
    pub condition: String,
    /// `WellKnownConditions` or `CEL`.
    #[serde(rename = "type")]
    pub kind: String,
    pub cel_expressions: Vec<String>,
    pub message: String,
    pub message_expression: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// Empty for `Update`.
    #[serde(rename = "type")]
    pub kind: String,
    pub server_side_apply: Option<ServerSideApply>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServerSideApply {
    pub force: bool,
    pub field_manager: String,
    pub ignore_fields: Vec<IgnoreField>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct IgnoreField {
    /// `OnSpokePresent` or `OnSpokeChange`.
    pub condition: String,
    pub json_paths: Vec<String>,
    pub json_pointers: Vec<String>,
    pub jq_path_expressions: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ManifestWorkExecutor {
    pub subject: Subject,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Subject {
    #[serde(rename = "type")]
    pub kind: String,
    pub service_account: Option<ServiceAccount>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ServiceAccount {
    pub namespace: String,
    pub name: String,
}
