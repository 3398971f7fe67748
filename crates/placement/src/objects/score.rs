//! `AddOnPlacementScore` (`cluster.open-cluster-management.io/v1alpha1`).

use serde::Deserialize;
use serde_json::Value as Json;
use time::OffsetDateTime;

use super::{list, moment, text};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Json")]
pub struct AddOnPlacementScore {
    /// The object's namespace.
    pub cluster: String,
    /// The object's name.
    pub resource: String,
    /// In the object's order, which expressions see.
    pub scores: Vec<ScoreItem>,
    /// Positions in `scores`, by name, then in the object's order: the API bounds neither.
    by_name: Box<[usize]>,
    pub valid_until: Option<OffsetDateTime>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoreItem {
    pub name: String,
    /// −100 to 100 by the API; other values are used as they are.
    pub value: i64,
}

// === impl AddOnPlacementScore ===

impl AddOnPlacementScore {
    /// The score `name`. If several have the name, the last counts.
    pub fn value(&self, name: &str) -> Option<i64> {
        let item = |at: &usize| self.scores.get(*at);
        let end = self.by_name.partition_point(|at| item(at).is_some_and(|item| item.name.as_str() <= name));
        let last = end.checked_sub(1).and_then(|at| self.by_name.get(at)).and_then(item)?;
        (last.name == name).then_some(last.value)
    }
}

impl From<Json> for AddOnPlacementScore {
    fn from(object: Json) -> Self {
        let item = |item: &Json| ScoreItem {
            name: text(item, "/name"),
            value: item.pointer("/value").and_then(Json::as_i64).unwrap_or(0),
        };
        let scores: Vec<ScoreItem> = list(&object, "/status/scores").iter().map(item).collect();
        let mut by_name: Box<[usize]> = (0..scores.len()).collect();
        by_name.sort_by_key(|at| scores.get(*at).map(|item| &item.name));
        Self {
            cluster: text(&object, "/metadata/namespace"),
            resource: text(&object, "/metadata/name"),
            scores,
            by_name,
            valid_until: moment(&object, "/status/validUntil"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_several_of_one_name_the_last_counts() {
        let items = [("b", 1), ("a", 2), ("b", 3), ("c", 4)].map(|(name, value)| json!({"name": name, "value": value}));
        let score = AddOnPlacementScore::from(json!({"status": {"scores": items}}));
        let found = ["a", "b", "c", "", "bb", "d"].map(|name| score.value(name));
        assert_eq!(found, [Some(2), Some(3), Some(4), None, None, None]);
    }
}
