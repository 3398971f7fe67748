//! `ManagedClusterSet` and `ManagedClusterSetBinding`
//! (`cluster.open-cluster-management.io/v1beta2`).

use serde::Deserialize;
use serde_json::Value as Json;

use super::{ManagedCluster, text};
use crate::labels::Labels;
use crate::selector::{LabelSelector, Selector};

/// Label of a cluster: the one exclusive set that it is in.
pub const SET_LABEL: &str = "cluster.open-cluster-management.io/clusterset";

#[derive(Debug, Clone, Deserialize)]
#[serde(from = "Json")]
pub struct ManagedClusterSet {
    pub name: String,
    pub members: Members,
}

/// The members of a set.
#[derive(Debug, Clone)]
pub enum Members {
    /// Clusters whose label [`SET_LABEL`] is the set's name.
    Labelled,
    Selected(Selector),
    /// Unknown, and why.
    Unreadable(String),
}

/// Allows a namespace to use a set. Its name is the set's.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Json")]
pub struct ManagedClusterSetBinding {
    pub namespace: String,
    pub name: String,
}

// === impl ManagedClusterSet ===

impl ManagedClusterSet {
    pub fn read(object: &Json) -> Self {
        let kind = text(object, "/spec/clusterSelector/selectorType");
        let members = match kind.as_str() {
            "" | "ExclusiveClusterSetLabel" => Members::Labelled,
            "LabelSelector" => selected(object.pointer("/spec/clusterSelector/labelSelector")),
            other => Members::Unreadable(format!("selectorType is not right: {other}")),
        };
        Self { name: text(object, "/metadata/name"), members }
    }

    pub fn has(&self, cluster: &ManagedCluster) -> bool {
        self.selects(&cluster.labels)
    }

    /// Whether a cluster with these labels is in the set.
    pub fn selects(&self, labels: &Labels) -> bool {
        match &self.members {
            Members::Labelled => labels.get(SET_LABEL) == Some(self.name.as_str()),
            Members::Selected(selector) => selector.matches(labels),
            Members::Unreadable(_) => false,
        }
    }
}

impl From<Json> for ManagedClusterSet {
    fn from(object: Json) -> Self {
        Self::read(&object)
    }
}

/// A missing selector selects nothing, an empty one everything, as in Kubernetes.
fn selected(selector: Option<&Json>) -> Members {
    let Some(selector) = selector.filter(|selector| !selector.is_null()) else {
        return Members::Selected(Selector::nothing());
    };
    let read = LabelSelector::deserialize(selector).map_err(|error| error.to_string());
    let compiled = read.and_then(|selector| Selector::compile(&selector).map_err(|error| error.to_string()));
    compiled.map_or_else(Members::Unreadable, Members::Selected)
}

// === impl ManagedClusterSetBinding ===

impl From<Json> for ManagedClusterSetBinding {
    fn from(object: Json) -> Self {
        Self { namespace: text(&object, "/metadata/namespace"), name: text(&object, "/metadata/name") }
    }
}
