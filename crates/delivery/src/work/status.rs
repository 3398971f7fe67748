//! The status of a `ManifestWork`.

use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::feedback::Value;
use crate::manifests::Manifest;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ManifestWorkStatus {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    pub resource_status: ResourceStatus,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceStatus {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<ManifestCondition>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ManifestCondition {
    pub resource_meta: ResourceMeta,
    pub status_feedback: StatusFeedback,
    pub conditions: Vec<Condition>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceMeta {
    pub ordinal: usize,
    pub group: String,
    pub version: String,
    pub kind: String,
    pub resource: String,
    pub name: String,
    pub namespace: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusFeedback {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<FeedbackValue>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedbackValue {
    pub name: String,
    pub field_value: FieldValue,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FieldValue {
    /// `Integer`, `String`, `Boolean` or `JsonRaw`.
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integer: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub string: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boolean: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_raw: Option<String>,
}

// === impl ManifestCondition ===

impl ManifestCondition {
    pub fn new(manifest: &Manifest, condition: Condition) -> Self {
        let resource_meta = ResourceMeta::from(manifest);
        Self { resource_meta, status_feedback: StatusFeedback::default(), conditions: vec![condition] }
    }
}

// === impl ResourceMeta ===

impl From<&Manifest> for ResourceMeta {
    fn from(manifest: &Manifest) -> Self {
        Self {
            ordinal: manifest.ordinal,
            group: manifest.group.clone(),
            version: manifest.version.clone(),
            kind: manifest.kind.clone(),
            resource: manifest.resource.clone(),
            name: manifest.name.clone(),
            namespace: manifest.namespace.clone(),
        }
    }
}

// === impl FieldValue ===

impl From<Value> for FieldValue {
    fn from(value: Value) -> Self {
        let of = |kind: &str| Self { kind: kind.to_owned(), ..Self::default() };
        match value {
            Value::Integer(value) => Self { integer: Some(value), ..of("Integer") },
            Value::String(value) => Self { string: Some(value), ..of("String") },
            Value::Boolean(value) => Self { boolean: Some(value), ..of("Boolean") },
            Value::JsonRaw(value) => Self { json_raw: Some(value), ..of("JsonRaw") },
        }
    }
}
