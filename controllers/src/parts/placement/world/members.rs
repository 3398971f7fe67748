//! Changes of clusters and sets, and the Placements that can see them.

use std::sync::Arc;

use placement::objects::{ManagedCluster, ManagedClusterSet, SET_LABEL};
use placement::tree::{Entry, Tree};
use serde_json::Value;
use time::OffsetDateTime;

use super::{ObservedPlacement, Woken, World};
use crate::parts::placement::kinds::Of;
use crate::wakes::Key;

/// A set, and its selector as JSON, to detect changes.
pub struct Set {
    pub set: Arc<ManagedClusterSet>,
    selector: Value,
}

/// Metadata fields that change with every write of an object.
const OF_A_WRITE: [&str; 3] = ["resourceVersion", "generation", "managedFields"];

fn is_same_to_see(before: &Tree, after: &Tree) -> bool {
    let [metadata, other] = [before, after].map(|object| object.get("metadata").map_or(&[][..], Tree::entries));
    is_same_but(before.entries(), after.entries(), &["metadata"]) && is_same_but(metadata, other, &OF_A_WRITE)
}

fn is_same_but(before: &[Entry], after: &[Entry], but: &[&str]) -> bool {
    let is_seen = |(name, _): &&Entry| !but.contains(&&**name);
    before.iter().filter(is_seen).eq(after.iter().filter(is_seen))
}

// === impl World ===

impl World {
    pub(super) fn put_cluster(&mut self, object: Value, now: OffsetDateTime) -> Woken {
        self.renew_cluster(&Arc::new(ManagedCluster::from(object)), now)
    }

    /// A cluster that is too large stays as it is known, but for what administrators decide: its
    /// set, its taints and its deletion, as far as `seen` has them. One that is not known stays
    /// unknown.
    pub fn put_large_cluster(&mut self, seen: Value, now: OffsetDateTime) -> Woken {
        let (has_labels, has_taints) = (seen["metadata"]["labels"].is_object(), seen["spec"]["taints"].is_array());
        let seen = ManagedCluster::from(seen);
        let Some(known) = self.clusters.get(&seen.name) else { return Woken::new() };
        let mut cluster = ManagedCluster::clone(known);
        cluster.is_deleting = seen.is_deleting;
        if has_taints {
            cluster.taints = seen.taints;
        }
        if has_labels {
            cluster.labels = cluster.labels.with(SET_LABEL, seen.labels.get(SET_LABEL));
        }
        let woken = self.renew_cluster(&Arc::new(cluster), now);
        self.woken(woken)
    }

    fn renew_cluster(&mut self, cluster: &Arc<ManagedCluster>, now: OffsetDateTime) -> Woken {
        let name = cluster.name.clone();
        if cluster.is_deleting && self.clusters.get(&name).is_some_and(|before| !before.is_deleting) {
            self.count_removal(Of::Cluster, &(String::new(), name.clone()), now);
        }
        let before = self.clusters.put(cluster);
        let after = &**cluster;
        let Some(before) = &before else { return self.seeing(&[after], |_| true) };
        if differ(before, after) {
            return self.seeing(&[before, after], |_| true);
        }
        // Only expressions see the rest of a cluster.
        if is_same_to_see(before.object(), after.object()) {
            return Woken::new();
        }
        self.seeing(&[after], ObservedPlacement::has_expressions)
    }

    pub(super) fn remove_cluster(&mut self, name: &str) -> Woken {
        let removed = self.clusters.remove(name);
        removed.map_or_else(Woken::new, |cluster| self.seeing(&[&cluster], |_| true))
    }

    pub(super) fn put_set(&mut self, object: &Value) -> Woken {
        let set = Arc::new(ManagedClusterSet::read(object));
        let selector = object["spec"]["clusterSelector"].clone();
        let name = set.name.clone();
        self.hold.came_back(Of::Set, "", &name);
        let before = self.sets.insert(name.clone(), Set { set, selector });
        let after = self.sets.get(&name);
        match (before, after) {
            (Some(before), Some(after)) if before.selector == after.selector => Woken::new(),
            (Some(_), _) => self.known_of(&name).map(|known| known.key.clone()).collect(),
            (None, _) => self.bound_to(&name),
        }
    }

    pub(super) fn remove_set(&mut self, name: &str) -> Woken {
        let removed = self.sets.remove(name);
        if removed.is_none() { Woken::new() } else { self.bound_to(name) }
    }

    /// All Placements of a namespace, because each reports whether there are bindings at all.
    pub(super) fn all_in(&self, namespace: &str) -> impl Iterator<Item = Key> {
        let names = self.placements.get(namespace).into_iter().flat_map(|names| names.values());
        names.map(|known| known.key.clone())
    }

    /// Placements that see one of these clusters through one of its sets, and that `concerns`
    /// accepts.
    pub(super) fn seeing(&self, clusters: &[&ManagedCluster], concerns: impl Fn(&ObservedPlacement) -> bool) -> Woken {
        let sets = self.sets.values().filter(|set| clusters.iter().any(|cluster| set.set.has(cluster)));
        let known = sets.flat_map(|set| self.known_of(&set.set.name));
        known.filter(|known| concerns(known)).map(|known| known.key.clone()).collect()
    }

    /// Placements of all namespaces that bind `set`: a binding takes effect only while its set
    /// exists.
    fn bound_to(&self, set: &str) -> Woken {
        let namespaces = self.bound.get(set).into_iter().flatten();
        namespaces.flat_map(|namespace| self.all_in(namespace)).collect()
    }

    fn known_of(&self, set: &str) -> impl Iterator<Item = &ObservedPlacement> {
        let namespaces = self.bound.get(set).into_iter().flatten();
        namespaces.flat_map(move |namespace| self.known_in(namespace, set))
    }

    fn known_in(&self, namespace: &str, set: &str) -> impl Iterator<Item = &ObservedPlacement> {
        let names = self.placements.get(namespace).into_iter().flat_map(|names| names.values());
        names.filter(move |known| known.looks_at(set))
    }
}

/// Whether the clusters differ in a field that is used outside expressions.
fn differ(before: &ManagedCluster, after: &ManagedCluster) -> bool {
    let quantities = |cluster: &ManagedCluster| (cluster.cpu.map(f64::to_bits), cluster.memory.map(f64::to_bits));
    before.labels != after.labels
        || before.claims != after.claims
        || before.taints != after.taints
        || before.is_deleting != after.is_deleting
        || quantities(before) != quantities(after)
}
