//! `ManifestWorkReplicaSet` (`work.open-cluster-management.io/v1alpha1`): a work for each cluster
//! that its Placements choose.

mod status;
mod works;

pub use self::status::{
    PlacementRollout, PlacementSummary, SetStatus, Summary, invalid_name, not_found, status, unreadable,
};
pub use self::works::{Name, Work, differing, is_so, name, patch, work};

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value as Json};

use super::kind::PROGRESSING;
use crate::fields::{is_ending, list, text};
use crate::rollout::RolloutStrategy;

/// Label of each work of a set: `<namespace>.<name>` of the set.
pub const SET_LABEL: &str = "work.open-cluster-management.io/manifestworkreplicaset";
/// Label of each work of a set: the Placement for which it is.
pub const PLACEMENT_LABEL: &str = "work.open-cluster-management.io/placementname";
/// Longest value of a label, in characters.
const LABEL: usize = 63;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "Json")]
pub struct ReplicaSet {
    pub namespace: String,
    pub name: String,
    pub generation: i64,
    pub is_ending: bool,
    pub labels: Map<String, Json>,
    /// The spec of each work, as written.
    pub template: Arc<Json>,
    pub placements: Vec<PlacementReference>,
    /// Why its Placements or its template cannot be read: `placements` and `template` mean nothing
    /// then.
    pub unreadable: Option<String>,
    /// Its finalizer stays until its works are gone (`cascadeDeletionPolicy: Foreground`).
    pub waits_for_works: bool,
    pub status: SetStatus,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PlacementReference {
    pub name: String,
    pub rollout_strategy: RolloutStrategy,
}

// === impl ReplicaSet ===

impl ReplicaSet {
    /// Whether a rule of its template sets `Progressing` for any object: without one, another
    /// writer must report a work's progress.
    pub fn has_progressing_rule(&self) -> bool {
        let is_such = |rule: &Json| text(rule, "/type") == "CEL" && text(rule, "/condition") == PROGRESSING;
        let configs = list(&self.template, "/manifestConfigs").iter();
        configs.flat_map(|config| list(config, "/conditionRules")).any(is_such)
    }

    /// The value of [`SET_LABEL`] on its works.
    ///
    /// # Errors
    ///
    /// Fails if it is not valid for a label; the error says what to do.
    pub fn key(&self) -> Result<String, String> {
        let key = format!("{}.{}", self.namespace, self.name);
        // Namespaces and names have no characters that a label may not have.
        if key.len() <= LABEL {
            return Ok(key);
        }
        Err(format!(
            "ManifestWork owner reference {key:?} (namespace.name) is not a valid label value: must be no more than \
             {LABEL} characters; recreate the ManifestWorkReplicaSet with a shorter namespace and/or name so the \
             combined length is at most {LABEL} characters"
        ))
    }
}

impl From<Json> for ReplicaSet {
    fn from(object: Json) -> Self {
        let at = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
        let read = Option::<Vec<PlacementReference>>::deserialize(at("/spec/placementRefs"));
        let (placements, mut unreadable) = match read {
            Ok(placements) => (placements.unwrap_or_default(), None),
            Err(error) => (Vec::new(), Some(format!("placementRefs: {error}"))),
        };
        // A string there says why the value could not be read. Such a set must not count as one
        // that wants nothing: its works would be deleted.
        if let Some(why) = ["/spec", "/spec/manifestWorkTemplate"].iter().find_map(|at| object.pointer(at)?.as_str()) {
            unreadable = Some(why.to_owned());
        }
        Self {
            namespace: text(&object, "/metadata/namespace").to_owned(),
            name: text(&object, "/metadata/name").to_owned(),
            generation: at("/metadata/generation").as_i64().unwrap_or(0),
            is_ending: is_ending(&object),
            labels: at("/metadata/labels").as_object().cloned().unwrap_or_default(),
            template: Arc::new(at("/spec/manifestWorkTemplate")),
            placements,
            unreadable,
            waits_for_works: text(&object, "/spec/cascadeDeletionPolicy") == "Foreground",
            status: serde_json::from_value(at("/status")).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests;
