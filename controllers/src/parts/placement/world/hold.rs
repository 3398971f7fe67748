//! The removal hold: after many objects were removed at once, decisions keep the clusters that left
//! because of that.
//!
//! A cluster left by a removal if its object is gone or being deleted, or if it would still be a
//! candidate with the set or the binding that went. A cluster that leaves for another reason, such
//! as a taint or an edit of the Placement, did not leave by a removal.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use placement::objects::{ManagedCluster, ManagedClusterSet, PlacementDecision};
use register::removals::HELD;
use time::OffsetDateTime;

use super::removals::Removals;
use super::{ObservedPlacement, World};
use crate::parts::placement::kinds::Of;
use crate::wakes::Key;

#[derive(Debug, Default)]
pub struct Hold {
    /// Most removals within a minute that take effect; none: all of them do.
    limit: Option<usize>,
    clusters: Removals,
    sets: Removals,
    /// Sets that are gone, as they were.
    gone_sets: HashMap<String, Arc<ManagedClusterSet>>,
    /// By namespace, so that writers of one namespace cannot hold another.
    bindings: HashMap<String, Removals>,
    /// End of the hold everywhere. `until_in` has that of single namespaces.
    until: Option<OffsetDateTime>,
    until_in: HashMap<String, OffsetDateTime>,
    /// Second of the last `forget`.
    forgotten_at: i64,
}

// === impl Hold ===

impl Hold {
    pub fn limited(limit: usize) -> Self {
        Self { limit: Some(limit), ..Self::default() }
    }

    /// Notes that an object exists, perhaps again.
    pub fn came_back(&mut self, of: Of, namespace: &str, name: &str) {
        match of {
            Of::Set => {
                self.sets.came_back(name);
                self.gone_sets.remove(name);
            }
            Of::Binding => {
                if let Some(removals) = self.bindings.get_mut(namespace) {
                    removals.came_back(name);
                }
            }
            _ => {}
        }
    }

    fn forget(&mut self, now: OffsetDateTime) {
        if self.forgotten_at == now.unix_timestamp() {
            return;
        }
        self.forgotten_at = now.unix_timestamp();
        self.clusters.forget(now);
        self.sets.forget(now);
        self.gone_sets.retain(|name, _| self.sets.has(name, now));
        self.bindings.retain(|_, removals| !removals.forget(now));
        self.until_in.retain(|_, end| now < *end);
    }
}

// === impl World ===

impl World {
    /// Begins a hold everywhere: the definition of a kind is being deleted or has come back, and
    /// the absence of its objects says nothing about where workloads should run.
    pub fn hold(&mut self, now: OffsetDateTime) {
        self.hold.until = Some(now + HELD);
    }

    /// End of the current hold on the decisions of a namespace.
    pub fn holds(&self, namespace: &str, now: OffsetDateTime) -> Option<OffsetDateTime> {
        self.hold.until.max(self.hold.until_in.get(namespace).copied()).filter(|end| now < *end)
    }

    /// Counts clusters that decisions name and that are gone or being deleted as removed now,
    /// because only the former leader may have seen their removal. All kinds must be listed.
    pub fn count_missing(&mut self, now: OffsetDateTime) {
        let is_missing = |name: &str| self.clusters.get(name).is_none_or(|cluster| cluster.is_deleting);
        let missing: BTreeSet<String> = self.all_decided(is_missing).map(str::to_owned).collect();
        for name in missing {
            self.count_cluster(&name, self.clusters.len(), now);
        }
    }

    /// Clusters that decisions of a Placement name and that a removal may take away, if they are
    /// `is_wanted`. Two kinds of decisions do not count, so that a mistake in one namespace holds
    /// no other: those that a person wrote or labelled, and those of a Placement that keeps its
    /// decisions anyway.
    ///
    /// `is_wanted` runs first, because this reads all decisions of a fleet.
    fn decided<'w>(
        &'w self,
        known: &'w ObservedPlacement,
        is_wanted: impl Fn(&str) -> bool + Copy + 'w,
    ) -> impl Iterator<Item = &'w str> {
        let (namespace, name) = (&known.key.0, &known.key.1);
        let decisions = self.decisions.of(namespace, name).filter(|_| known.may_lose_clusters());
        let wanted = move |decision: &'w PlacementDecision| {
            decision.clusters.iter().map(String::as_str).filter(move |name| is_wanted(name))
        };
        let is_scheduled = move |decision: &&'w PlacementDecision| {
            wanted(decision).next().is_some()
                && self.held(&(namespace.clone(), decision.name.clone())).is_some_and(|held| held.is_scheduled)
        };
        decisions.filter(is_scheduled).flat_map(wanted)
    }

    fn all_decided<'w>(&'w self, is_wanted: impl Fn(&str) -> bool + Copy + 'w) -> impl Iterator<Item = &'w str> {
        let placements = self.placements.values().flat_map(BTreeMap::values);
        placements.flat_map(move |known| self.decided(known, is_wanted))
    }

    fn is_decided(&self, cluster: &str) -> bool {
        self.decisions.uses(cluster) > 0 && self.all_decided(|name| name == cluster).next().is_some()
    }

    /// Counts an object that is about to be removed, or that is being deleted.
    pub(super) fn count_removal(&mut self, of: Of, key: &Key, now: OffsetDateTime) {
        self.hold.forget(now);
        match of {
            Of::Cluster if self.is_decided(&key.1) => {
                // A deletion counts when it begins; `Removals` counts the same name only once.
                let is_there = self.clusters.get(&key.1).is_some();
                self.count_cluster(&key.1, self.clusters.len().saturating_sub(usize::from(is_there)), now);
            }
            Of::Set => self.count_set(&key.1, now),
            Of::Binding => self.count_binding(key, now),
            _ => {}
        }
    }

    fn count_cluster(&mut self, name: &str, left: usize, now: OffsetDateTime) {
        if let Some(limit) = self.hold.limit
            && self.hold.clusters.more(name, now, left, limit)
        {
            self.hold(now);
        }
    }

    fn count_set(&mut self, name: &str, now: OffsetDateTime) {
        let Some(set) = self.sets.get(name).map(|set| Arc::clone(&set.set)) else { return };
        // Its bindings may have gone first.
        let unbound = self.hold.bindings.iter().filter(|(_, gone)| gone.has(name, now));
        let namespaces = self.bound.get(name).into_iter().flatten();
        let mut namespaces = namespaces.chain(unbound.map(|(namespace, _)| namespace));
        if !namespaces.any(|namespace| self.takes_from(namespace, &set)) {
            return;
        }
        self.hold.gone_sets.insert(name.to_owned(), set);
        let limit = self.hold.limit.unwrap_or(usize::MAX);
        if self.hold.sets.more(name, now, self.sets.len().saturating_sub(1), limit) && self.hold.limit.is_some() {
            self.hold(now);
        }
    }

    fn count_binding(&mut self, (namespace, name): &Key, now: OffsetDateTime) {
        let Some(left) = self.bindings.get(namespace).filter(|names| names.contains_key(name)) else { return };
        let left = left.len().saturating_sub(1);
        if !self.set(name).is_some_and(|set| self.takes_from(namespace, &set)) {
            return;
        }
        let limit = self.hold.limit.unwrap_or(usize::MAX);
        let removals = self.hold.bindings.entry(namespace.clone()).or_default();
        if removals.more(name, now, left, limit) && self.hold.limit.is_some() {
            self.hold.until_in.insert(namespace.clone(), now + HELD);
        }
    }

    /// A set that exists, or that is gone.
    fn set(&self, name: &str) -> Option<Arc<ManagedClusterSet>> {
        self.sets.get(name).map(|set| &set.set).or_else(|| self.hold.gone_sets.get(name)).cloned()
    }

    /// Whether decisions of a namespace name a cluster of a set.
    fn takes_from(&self, namespace: &str, set: &ManagedClusterSet) -> bool {
        let placements = self.placements.get(namespace).into_iter().flat_map(BTreeMap::values);
        let is_in_set = |name: &str| self.clusters.get(name).is_some_and(|cluster| set.has(cluster));
        placements.flat_map(|known| self.decided(known, is_in_set)).next().is_some()
    }

    /// Whether a cluster that a Placement would lose has left by a removal.
    pub fn has_left(&self, known: &ObservedPlacement, cluster: &str, now: OffsetDateTime) -> bool {
        let Some(cluster) = self.clusters.get(cluster).filter(|cluster| !cluster.is_deleting) else { return true };
        if self.is_candidate(known, cluster) {
            return false;
        }
        let gone = self.hold.bindings.get(&known.key.0);
        let bound = self.bindings.get(&known.key.0);
        let is_gone = |set: &str| gone.is_some_and(|gone| gone.has(set, now));
        let is_bound = |set: &str| bound.is_some_and(|names| names.contains_key(set));
        let would_have = |set: &ManagedClusterSet| known.looks_at(&set.name) && set.has(cluster);
        let of_sets = self.hold.gone_sets.values().any(|set| {
            self.hold.sets.has(&set.name, now) && (is_bound(&set.name) || is_gone(&set.name)) && would_have(set)
        });
        of_sets || self.sets.values().any(|set| is_gone(&set.set.name) && would_have(&set.set))
    }

    /// Whether a cluster is still in one of a Placement's sets.
    fn is_candidate(&self, known: &ObservedPlacement, cluster: &ManagedCluster) -> bool {
        let names = self.bindings.get(&known.key.0).into_iter().flat_map(|names| names.keys());
        let mut sets = names.filter(|name| known.looks_at(name)).filter_map(|name| self.sets.get(name));
        sets.any(|set| set.set.has(cluster))
    }
}
