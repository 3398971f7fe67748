//! What a profile says of the cluster beside its health: where it is, and what the member says of
//! itself.
//!
//! A member's administrator writes the latter: what its Secret says counts before it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::fields::{list, text};
use crate::karmada::{PROVIDER_LABEL, REGION_LABEL, ZONE_LABEL};

/// `ClusterProperty` (KEP-2149) as members serve it: the newest version first.
pub const MEMBER_PROPERTIES: [&str; 2] =
    ["/apis/about.k8s.io/v1beta1/clusterproperties", "/apis/about.k8s.io/v1alpha1/clusterproperties"];
/// Open Cluster Management's `ClusterClaim`.
pub const CLAIMS: &str = "/apis/cluster.open-cluster-management.io/v1alpha1/clusterclaims";

/// Labels of the cluster's Secret, and the properties that they are.
const OF_LABELS: [(&str, &str); 3] = [("region", REGION_LABEL), ("zones", ZONE_LABEL), ("provider", PROVIDER_LABEL)];
/// The property that tells the clusters of a set apart (KEP-2149). The registered name does, too.
const ID: &str = "cluster.clusterset.k8s.io";
/// Properties of one profile. Members have ten; readers keep those of all.
const MOST: usize = 128;
/// Characters, by the kind's definition.
const LONGEST_NAME: usize = 253;
const LONGEST_VALUE: usize = 1024;

/// A property of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Property {
    pub name: String,
    pub value: String,
}

/// The properties in a list of `ClusterProperty` or `ClusterClaim`. What is none is left out.
pub fn read(objects: &Value) -> Vec<Property> {
    let items = list(objects, "items").unwrap_or_default();
    let property = |item: &Value| {
        let (name, value) = (text(item, "metadata.name").ok()?, text(item, "spec.value").ok()?);
        Property::new(name, value)
    };
    items.iter().filter_map(property).collect()
}

/// Those that a profile has.
pub(super) fn published(profile: &Value) -> Vec<Property> {
    let properties = list(profile, "status.properties").unwrap_or_default();
    properties.iter().filter_map(|known| Property::new(text(known, "name").ok()?, text(known, "value").ok()?)).collect()
}

/// All of a cluster, each name once, sorted. Of one name the first counts: the Secret's, then the
/// one from `told`.
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
    /// None: the kind takes no such property.
    fn new(name: &str, value: &str) -> Option<Self> {
        let fits = |text: &str, most: usize| !text.is_empty() && text.chars().count() <= most;
        let is_one = fits(name, LONGEST_NAME) && fits(value, LONGEST_VALUE);
        is_one.then(|| Self { name: name.to_owned(), value: value.to_owned() })
    }

    /// Without `lastObservedTime`: it would be a write for each look.
    pub(super) fn document(&self) -> Value {
        json!({"name": self.name, "value": self.value})
    }
}
