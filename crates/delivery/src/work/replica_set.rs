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

/// On each work of a set: `<namespace>.<name>` of the set.
pub const SET_LABEL: &str = "work.open-cluster-management.io/manifestworkreplicaset";
/// On each work of a set: which of its Placements it is for.
pub const PLACEMENT_LABEL: &str = "work.open-cluster-management.io/placementname";
/// Characters of a label's value.
const LABEL: usize = 63;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "Json")]
pub struct ReplicaSet {
    pub namespace: String,
    pub name: String,
    pub generation: i64,
    pub is_ending: bool,
    pub labels: Map<String, Json>,
    /// The spec of each work, as it is written.
    pub template: Arc<Json>,
    pub placements: Vec<PlacementReference>,
    /// Why its Placements cannot be read, which are none then: nothing is to be concluded of that.
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
    /// Whether a rule of its template makes `Progressing` of any object: without one, another
    /// writer has to say how far a work is.
    pub fn has_progressing_rule(&self) -> bool {
        let is_such = |rule: &Json| text(rule, "/type") == "CEL" && text(rule, "/condition") == PROGRESSING;
        let configs = list(&self.template, "/manifestConfigs").iter();
        configs.flat_map(|config| list(config, "/conditionRules")).any(is_such)
    }

    /// The value of [`SET_LABEL`] on its works.
    ///
    /// # Errors
    ///
    /// It is no value of a label; the error says what to do.
    pub fn key(&self) -> Result<String, String> {
        let key = format!("{}.{}", self.namespace, self.name);
        // Namespaces and names hold nothing that a label may not.
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
        // A text says why what should be there could not be read. It is not a set that wants
        // nothing, whose works go.
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
