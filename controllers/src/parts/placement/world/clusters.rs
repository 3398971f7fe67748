//! All clusters of the hub, also by the set that their label names.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use placement::objects::{ManagedCluster, SET_LABEL};

type Named = BTreeMap<String, Arc<ManagedCluster>>;

#[derive(Default)]
pub struct Clusters {
    all: Named,
    /// By the set that the label names, even if there is no such set.
    labelled: HashMap<String, Named>,
}

/// The set that a cluster's label names.
pub fn set_of(cluster: &ManagedCluster) -> Option<&str> {
    cluster.labels.get(SET_LABEL)
}

// === impl Clusters ===

impl Clusters {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn get(&self, name: &str) -> Option<&Arc<ManagedCluster>> {
        self.all.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.all.keys()
    }

    /// In the order of their names.
    pub fn all(&self) -> impl Iterator<Item = &Arc<ManagedCluster>> {
        self.all.values()
    }

    /// In the order of their names, those whose label names a set.
    pub fn labelled(&self, set: &str) -> impl Iterator<Item = &Arc<ManagedCluster>> {
        self.labelled.get(set).into_iter().flat_map(BTreeMap::values)
    }

    /// Returns the former value.
    pub fn put(&mut self, cluster: &Arc<ManagedCluster>) -> Option<Arc<ManagedCluster>> {
        let before = self.remove(&cluster.name);
        if let Some(set) = set_of(cluster) {
            self.labelled.entry(set.to_owned()).or_default().insert(cluster.name.clone(), Arc::clone(cluster));
        }
        self.all.insert(cluster.name.clone(), Arc::clone(cluster));
        before
    }

    /// Returns the former value.
    pub fn remove(&mut self, name: &str) -> Option<Arc<ManagedCluster>> {
        let before = self.all.remove(name)?;
        if let Some(set) = set_of(&before)
            && let Some(named) = self.labelled.get_mut(set)
        {
            named.remove(name);
            if named.is_empty() {
                self.labelled.remove(set);
            }
        }
        Some(before)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cluster_is_beside_those_of_its_set_as_long_as_it_is_one() {
        let mut clusters = Clusters::default();
        let mut put = |name: &str, set: &str| {
            let object = json!({"metadata": {"name": name, "labels": {SET_LABEL: set}}});
            clusters.put(&Arc::new(ManagedCluster::from(object))).is_some()
        };
        assert!(!put("b", "s") && !put("a", "s") && !put("c", "t"));
        assert!(put("c", "s") && put("b", "t"));
        let names = |of: &Clusters, set| of.labelled(set).map(|one| one.name.clone()).collect::<Vec<_>>();
        assert_eq!(
            (names(&clusters, "s"), names(&clusters, "t")),
            (vec!["a".to_owned(), "c".into()], vec!["b".into()])
        );
        assert!(clusters.remove("b").is_some() && clusters.remove("b").is_none());
        assert!(clusters.labelled.len() == 1 && clusters.len() == 2 && clusters.all().count() == 2);
    }
}
