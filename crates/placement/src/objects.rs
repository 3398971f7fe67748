//! Objects of a hub as they are read: what is missing is empty, what is not looked at is left out.

mod cluster;
mod decision;
mod placement;
mod score;
mod set;

pub use self::cluster::{ManagedCluster, Taint};
pub use self::decision::{PLACEMENT_LABEL, PlacementDecision};
pub use self::placement::{
    AddOnScore, CelSelector, ClusterClaimSelector, ClusterPredicate, ClusterSelector, DecisionGroup, DecisionStrategy,
    GroupStrategy, IntOrString, Metadata, Placement, PlacementSpec, PrioritizerConfig, PrioritizerPolicy,
    ScoreCoordinate, SpreadPolicy, Toleration,
};
pub use self::score::{AddOnPlacementScore, ScoreItem};
pub use self::set::{ManagedClusterSet, ManagedClusterSetBinding, Members, SET_LABEL};

use serde_json::Value as Json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::labels::Labels;

/// API group of everything here.
pub const GROUP: &str = "cluster.open-cluster-management.io";

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

#[cfg(test)]
mod tests;
