//! `ManagedCluster` (`cluster.open-cluster-management.io/v1`).

use serde::Deserialize;
use serde_json::{Value as Json, json};
use time::OffsetDateTime;

use super::{is_there, labels, list, moment, text};
use crate::labels::Labels;
use crate::quantity::Quantity;
use crate::tree::Tree;

/// A cluster: the fields that predicates, taints and prioritizers use, and the object for
/// expressions.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "Json")]
pub struct ManagedCluster {
    pub name: String,
    pub labels: Labels,
    /// `status.clusterClaims`; if several have one name, the last counts.
    pub claims: Labels,
    pub taints: Vec<Taint>,
    /// Allocatable cores, if the status has the capacity too.
    pub cpu: Option<f64>,
    /// Allocatable bytes, likewise.
    pub memory: Option<f64>,
    pub is_deleting: bool,
    object: Tree,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taint {
    pub key: String,
    pub value: String,
    /// `NoSelect`, `PreferNoSelect` or `NoSelectIfNew`.
    pub effect: String,
    /// `None` counts as so long ago that no toleration with an end lasts.
    pub time_added: Option<OffsetDateTime>,
}

// === impl ManagedCluster ===

impl ManagedCluster {
    /// The whole object, with the fields that upstream's type always has: expressions may test them
    /// with `has`.
    pub fn object(&self) -> &Tree {
        &self.object
    }
}

impl From<Json> for ManagedCluster {
    /// Expressions do not see the managers of fields (`metadata.managedFields`): a caller need not
    /// request them.
    fn from(mut object: Json) -> Self {
        if let Some(metadata) = object.get_mut("metadata").and_then(Json::as_object_mut) {
            metadata.remove("managedFields");
        }
        let claim = |claim: &Json| (text(claim, "/name"), text(claim, "/value"));
        Self {
            name: text(&object, "/metadata/name"),
            labels: labels(&object, "/metadata/labels"),
            claims: list(&object, "/status/clusterClaims").iter().map(claim).collect(),
            taints: list(&object, "/spec/taints").iter().map(Taint::read).collect(),
            cpu: allocatable(&object, "cpu"),
            memory: allocatable(&object, "memory"),
            is_deleting: is_there(&object, "/metadata/deletionTimestamp"),
            object: whole(object).into(),
        }
    }
}

// === impl Taint ===

impl Taint {
    fn read(object: &Json) -> Self {
        Self {
            key: text(object, "/key"),
            value: text(object, "/value"),
            effect: text(object, "/effect"),
            time_added: moment(object, "/timeAdded"),
        }
    }
}

/// The allocatable amount of `resource`, if its capacity is reported too.
fn allocatable(object: &Json, resource: &str) -> Option<f64> {
    let quantity = |of: &str| -> Option<f64> {
        let found = object.pointer(&format!("/status/{of}/{resource}"))?;
        let text = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
        text.parse().ok().map(|quantity: Quantity| quantity.approximate())
    };
    quantity("capacity").and_then(|_| quantity("allocatable"))
}

/// `object` with the fields that Go's type writes even when they are empty.
fn whole(mut object: Json) -> Json {
    if !object.is_object() {
        object = json!({});
    }
    for (parent, field, empty) in [
        ("", "metadata", json!({})),
        ("", "spec", json!({})),
        ("", "status", json!({})),
        ("/metadata", "creationTimestamp", Json::Null),
        ("/spec", "hubAcceptsClient", json!(false)),
        ("/status", "conditions", Json::Null),
        ("/status", "version", json!({})),
    ] {
        let parent = object.pointer_mut(parent).and_then(Json::as_object_mut);
        let entry = parent.map(|parent| parent.entry(field).or_insert_with(|| empty.clone()));
        if let Some(found) = entry.filter(|found| found.is_null()) {
            *found = empty;
        }
    }
    object
}
