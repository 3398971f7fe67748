//! `AddOnPlacementScore` (`cluster.open-cluster-management.io/v1alpha1`).

use serde::Deserialize;
use serde_json::Value as Json;
use time::OffsetDateTime;

use super::{list, moment, text};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Json")]
pub struct AddOnPlacementScore {
    /// Its namespace.
    pub cluster: String,
    /// Its name.
    pub resource: String,
    pub scores: Vec<ScoreItem>,
    pub valid_until: Option<OffsetDateTime>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoreItem {
    pub name: String,
    /// −100 to 100 by the API; others are taken as they are.
    pub value: i64,
}

// === impl AddOnPlacementScore ===

impl From<Json> for AddOnPlacementScore {
    fn from(object: Json) -> Self {
        let item = |item: &Json| ScoreItem {
            name: text(item, "/name"),
            value: item.pointer("/value").and_then(Json::as_i64).unwrap_or(0),
        };
        Self {
            cluster: text(&object, "/metadata/namespace"),
            resource: text(&object, "/metadata/name"),
            scores: list(&object, "/status/scores").iter().map(item).collect(),
            valid_until: moment(&object, "/status/validUntil"),
        }
    }
}
