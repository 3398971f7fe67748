//! `PlacementDecision` (`cluster.open-cluster-management.io/v1beta1`).

use serde::Deserialize;
use serde_json::Value as Json;

use super::{list, text};

/// Label of decisions: the name of their Placement.
pub const PLACEMENT_LABEL: &str = "cluster.open-cluster-management.io/placement";

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Json")]
pub struct PlacementDecision {
    pub namespace: String,
    pub name: String,
    /// What [`PLACEMENT_LABEL`] says.
    pub placement: Option<String>,
    /// In the order of `status.decisions`.
    pub clusters: Vec<String>,
}

// === impl PlacementDecision ===

impl From<Json> for PlacementDecision {
    fn from(object: Json) -> Self {
        let labels = object.pointer("/metadata/labels");
        let placement = labels.and_then(|labels| labels.get(PLACEMENT_LABEL)).and_then(Json::as_str);
        Self {
            namespace: text(&object, "/metadata/namespace"),
            name: text(&object, "/metadata/name"),
            placement: placement.map(str::to_owned),
            clusters: list(&object, "/status/decisions")
                .iter()
                .map(|decision| text(decision, "/clusterName"))
                .collect(),
        }
    }
}
