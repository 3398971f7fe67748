//! The properties in a profile, besides its health: the cluster's location, and what the member
//! says about itself.
//!
//! A member's administrator writes the latter, so the Secret's properties take precedence.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::fields::{list, text};
use crate::karmada::{PROVIDER_LABEL, REGION_LABEL, ZONE_LABEL};

/// Paths of `ClusterProperty` (KEP-2149) on members: the newest version first.
pub const MEMBER_PROPERTIES: [&str; 2] =
    ["/apis/about.k8s.io/v1beta1/clusterproperties", "/apis/about.k8s.io/v1alpha1/clusterproperties"];
/// Open Cluster Management's `ClusterClaim`.
pub const CLAIMS: &str = "/apis/cluster.open-cluster-management.io/v1alpha1/clusterclaims";

/// Labels of the cluster's Secret, and their properties.
const OF_LABELS: [(&str, &str); 3] = [("region", REGION_LABEL), ("zones", ZONE_LABEL), ("provider", PROVIDER_LABEL)];
/// The property that distinguishes the clusters of a set (KEP-2149). The registered name does, too.
const ID: &str = "cluster.clusterset.k8s.io";
/// Limit of one profile's properties. Members have ten; readers keep those of all.
const MOST: usize = 128;
/// Limit in characters, by the kind's definition.
const LONGEST_NAME: usize = 253;
const LONGEST_VALUE: usize = 1024;

/// A property of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Property {
    pub name: String,
    pub value: String,
}

/// The properties in a list of `ClusterProperty` or `ClusterClaim`. Invalid ones are left out.
pub fn read(objects: &Value) -> Vec<Property> {
    let items = list(objects, "items").unwrap_or_default();
    let property = |item: &Value| {
        let (name, value) = (text(item, "metadata.name").ok()?, text(item, "spec.value").ok()?);
        Property::new(name, value)
    };
    items.iter().filter_map(property).collect()
}

/// The properties that a profile has.
pub(super) fn published(profile: &Value) -> Vec<Property> {
    let properties = list(profile, "status.properties").unwrap_or_default();
    properties.iter().filter_map(|known| Property::new(text(known, "name").ok()?, text(known, "value").ok()?)).collect()
}

/// All properties of a cluster, each name once, sorted. For each name the first counts: the
/// Secret's, then the first in `told`.
pub(super) fn all(cluster: &str, labels: &BTreeMap<String, String>, told: Vec<Property>) -> Vec<Property> {
    let own = OF_LABELS.into_iter().filter_map(|(name, label)| Property::new(name, labels.get(label)?));
    let mut names = BTreeSet::new();
    let others = told.into_iter().chain(Property::new(ID, cluster));
    let mut all: Vec<_> = own.chain(others).filter(|property| names.insert(property.name.clone())).collect();
    all.truncate(MOST);
    all.sort();
    all
}

// === impl Property ===

impl Property {
    /// None if the kind does not allow such a property.
    fn new(name: &str, value: &str) -> Option<Self> {
        let fits = |text: &str, most: usize| !text.is_empty() && text.chars().count() <= most;
        let is_one = fits(name, LONGEST_NAME) && fits(value, LONGEST_VALUE);
        is_one.then(|| Self { name: name.to_owned(), value: value.to_owned() })
    }

    /// Without `lastObservedTime`, which would cause a write for each observation.
    pub(super) fn document(&self) -> Value {
        json!({"name": self.name, "value": self.value})
    }
}
