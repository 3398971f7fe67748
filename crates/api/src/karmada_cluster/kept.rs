//! The annotation that keeps the parts of a Cluster without a place in its Secret's keys and
//! labels.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Spec;
use super::text::Text;
use crate::hub_object::or_empty;
use crate::secret::ClusterSpec;

/// Longest value of [`crate::karmada::ANNOTATION`], in bytes: half of the limit for all annotations
/// of an object (`TotalAnnotationSizeLimitB`).
pub const MOST_KEPT: usize = 128 << 10;

/// The annotation's content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Kept {
    /// The Cluster's own annotations. Those of the Secret are not shown: they may repeat its data
    /// (kubectl's last-applied).
    #[serde(deserialize_with = "or_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) annotations: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) spec: Spec,
    #[serde(deserialize_with = "Text::object", skip_serializing_if = "Text::is_none")]
    pub(super) status: Text,
}

// === impl Kept ===

impl Kept {
    /// Empty if a person wrote something else there: the Secret then describes the cluster alone.
    pub(super) fn of(cluster: &ClusterSpec) -> Self {
        cluster.karmada.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// The annotation's value.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
