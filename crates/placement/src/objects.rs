//! Objects of a hub as they are parsed: a missing field is empty, unused fields are left out.

mod cluster;
mod placement;
mod score;
mod set;

pub use self::cluster::{ManagedCluster, Taint};
pub use self::placement::{
    AddOnScore, CelSelector, ClusterClaimSelector, ClusterPredicate, ClusterSelector, DecisionGroup, DecisionStrategy,
    GroupStrategy, IntOrString, Metadata, Placement, PlacementSpec, PrioritizerConfig, PrioritizerPolicy,
    ScoreCoordinate, SpreadPolicy, Toleration,
};
pub use self::score::{AddOnPlacementScore, ScoreItem};
pub use self::set::{ManagedClusterSet, ManagedClusterSetBinding, Members, SET_LABEL};

use serde::Deserialize;
use serde_json::Value as Json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::labels::Labels;

/// API group of everything here.
pub const GROUP: &str = "cluster.open-cluster-management.io";
/// Label of decisions: the name of their Placement.
pub const PLACEMENT_LABEL: &str = "cluster.open-cluster-management.io/placement";

/// `PlacementDecision` (`cluster.open-cluster-management.io/v1beta1`).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Json")]
pub struct PlacementDecision {
    pub namespace: String,
    pub name: String,
    /// The value of [`PLACEMENT_LABEL`].
    pub placement: Option<String>,
    /// In the order of `status.decisions`.
    pub clusters: Vec<String>,
}

fn text(object: &Json, pointer: &str) -> String {
    object.pointer(pointer).and_then(Json::as_str).unwrap_or_default().to_owned()
}

fn list<'j>(object: &'j Json, pointer: &str) -> &'j [Json] {
    object.pointer(pointer).and_then(Json::as_array).map_or(&[], Vec::as_slice)
}

fn labels(object: &Json, pointer: &str) -> Labels {
    let entries = object.pointer(pointer).and_then(Json::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
}

/// A moment in RFC 3339.
fn moment(object: &Json, pointer: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(object.pointer(pointer)?.as_str()?, &Rfc3339).ok()
}

fn is_there(object: &Json, pointer: &str) -> bool {
    object.pointer(pointer).is_some_and(|value| !value.is_null())
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

#[cfg(test)]
mod tests;
