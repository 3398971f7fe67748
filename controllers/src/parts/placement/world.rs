//! The state of the hub that choices depend on, and which Placements a change of it affects.
//!
//! No IO and no clock: watches put objects in here, and each call returns the Placements that can
//! see the difference.

mod clusters;
mod decisions;
mod foreign_writes;
mod hold;
mod members;
mod observed;
mod removals;
mod snapshot;

pub use self::decisions::DecisionOnHub;
pub use self::foreign_writes::ForeignWrites;
pub use self::observed::ObservedPlacement;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use placement::Input;
use placement::conditions::decided_generation;
use placement::index::{Decisions, Scores};
use placement::objects::{AddOnPlacementScore, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Members};
use serde_json::Value;
use time::OffsetDateTime;

use self::clusters::{Clusters, set_of};
use self::hold::Hold;
use self::members::Set;
use super::kinds::Of;
use crate::parts::watched::is_older;
use crate::wakes::Key;

#[derive(Default)]
pub struct World {
    /// By namespace and name.
    placements: HashMap<String, BTreeMap<String, ObservedPlacement>>,
    sets: BTreeMap<String, Set>,
    bindings: HashMap<String, BTreeMap<String, ManagedClusterSetBinding>>,
    /// By set: the namespaces that it is bound in.
    bound: HashMap<String, BTreeSet<String>>,
    clusters: Clusters,
    /// Copy on write: a change copies it only while a snapshot holds it.
    scores: Arc<Scores>,
    /// Copy on write, too.
    decisions: Arc<Decisions>,
    held: HashMap<Key, DecisionOnHub>,
    /// Decisions that this replica is writing.
    writing: HashSet<Key>,
    /// Number of lists of each kind since the start, by [`Of::index`].
    lists: [u32; Of::ALL.len()],
    hold: Hold,
    /// The last list sent for each decision of an existing Placement.
    sent: HashMap<Key, Vec<String>>,
}

/// Placements that must run again.
pub type Woken = BTreeSet<Key>;

// === impl World ===

impl World {
    /// A world that begins a hold when more than `removal_limit` clusters, sets, or bindings of one
    /// namespace go within a minute.
    pub fn limited(removal_limit: usize) -> Self {
        Self { hold: Hold::limited(removal_limit), ..Self::default() }
    }

    /// Begins to run Placements here, and returns all of them. The former leader's writes until now
    /// were no contest.
    pub fn take_over(&mut self, now: OffsetDateTime) -> Vec<Key> {
        self.count_missing(now);
        let all = self.placements.values_mut().flat_map(BTreeMap::values_mut);
        all.for_each(|known| known.foreign_writes = ForeignWrites::default());
        self.keys(Of::Placement)
    }

    /// Adds or updates an object.
    pub fn put(&mut self, of: Of, object: Value, now: OffsetDateTime) -> Woken {
        self.put_seen(of, object, now, false)
    }

    /// Begins a list of a kind.
    pub fn begin_list(&mut self, of: Of) {
        self.lists[of.index()] = self.lists[of.index()].wrapping_add(1);
    }

    /// Adds or updates an object from the current list. It counts whatever its version: after a
    /// restore of the hub, versions may be lower than before. Only a write since the list began may
    /// be newer.
    pub fn put_listed(&mut self, of: Of, object: Value, now: OffsetDateTime) -> Woken {
        self.put_seen(of, object, now, true)
    }

    /// Known objects that are not in `listing` and were not written since that list began.
    pub fn unlisted(&self, of: Of, listing: &HashSet<Key>) -> Vec<Key> {
        let list = self.lists[of.index()];
        let is_later = |key: &Key| match of {
            Of::Placement => self.placement(key).is_some_and(|known| known.seen_in == list),
            Of::Decision => self.held.get(key).is_some_and(|held| held.seen_in == list),
            _ => false,
        };
        self.keys(of).into_iter().filter(|key| !listing.contains(key) && !is_later(key)).collect()
    }

    fn put_seen(&mut self, of: Of, object: Value, now: OffsetDateTime, is_listed: bool) -> Woken {
        let key = key(&object);
        let woken = match of {
            Of::Placement => self.put_placement(key, &object, now, is_listed),
            Of::Decision => self.put_decision(&key, object, now, is_listed),
            Of::Cluster => self.put_cluster(object, now),
            Of::Set => self.put_set(&object),
            Of::Binding => self.put_binding(object),
            Of::Score => self.put_score(&key, object),
        };
        self.woken(woken)
    }

    /// Removes an object. With a `version`, only if the known object is not newer.
    pub fn remove(&mut self, of: Of, key: &Key, version: Option<&str>, now: OffsetDateTime) -> Woken {
        self.count_removal(of, key, now);
        let woken = match of {
            Of::Placement => self.remove_placement(key, version),
            Of::Decision => self.remove_decision(key, version, now),
            Of::Cluster => self.remove_cluster(&key.1),
            Of::Set => self.remove_set(&key.1),
            Of::Binding => self.remove_binding(key),
            Of::Score => self.remove_score(key),
        };
        self.woken(woken)
    }

    /// Keys of all objects of a kind.
    pub fn keys(&self, of: Of) -> Vec<Key> {
        let alone = |name: &String| (String::new(), name.clone());
        let within = |(namespace, name): (&String, &String)| (namespace.clone(), name.clone());
        match of {
            Of::Placement => pairs(&self.placements).map(within).collect(),
            Of::Binding => pairs(&self.bindings).map(within).collect(),
            Of::Cluster => self.clusters.names().map(alone).collect(),
            Of::Set => self.sets.keys().map(alone).collect(),
            Of::Decision => self.held.keys().cloned().collect(),
            Of::Score => self.scores.keys().map(|(cluster, name)| (cluster.to_owned(), name.to_owned())).collect(),
        }
    }

    pub fn placement(&self, (namespace, name): &Key) -> Option<&ObservedPlacement> {
        self.placements.get(namespace)?.get(name)
    }

    pub fn placement_mut(&mut self, (namespace, name): &Key) -> Option<&mut ObservedPlacement> {
        self.placements.get_mut(namespace)?.get_mut(name)
    }

    /// Calls `run` with the input of a Placement's run.
    pub fn with_input<T>(
        &self,
        known: &ObservedPlacement,
        now: OffsetDateTime,
        run: impl FnOnce(&Input<'_>) -> T,
    ) -> T {
        let bindings = self.bindings.get(&known.key.0);
        let bindings: Vec<_> = bindings.into_iter().flat_map(BTreeMap::values).collect();
        let sets: Vec<_> = bindings.iter().filter_map(|binding| Some(&*self.sets.get(&binding.name)?.set)).collect();
        let clusters: Vec<_> = self.looked_at(known, &sets).into_iter().map(Arc::as_ref).collect();
        run(&Input {
            placement: &known.prepared,
            sets: &sets,
            bindings: &bindings,
            clusters: &clusters,
            scores: &self.scores,
            decisions: &self.decisions,
            decided_generation: decided_generation(&known.status),
            now,
        })
    }

    /// Clusters that a Placement's run considers: those that may be in its `sets`, and those in its
    /// decisions. For sets by label, other clusters are not even read.
    pub(super) fn looked_at(
        &self,
        known: &ObservedPlacement,
        sets: &[&ManagedClusterSet],
    ) -> Vec<&Arc<ManagedCluster>> {
        let (namespace, name) = (&known.key.0, &known.key.1);
        let asked: Vec<_> = sets.iter().filter(|set| known.looks_at(&set.name)).collect();
        if asked.iter().any(|set| !matches!(set.members, Members::Labelled)) {
            return self.clusters.all().collect();
        }
        let asked: BTreeSet<&str> = asked.iter().map(|set| set.name.as_str()).collect();
        let mut found: Vec<_> = asked.iter().flat_map(|set| self.clusters.labelled(set)).collect();
        let decided = self.decisions.of(namespace, name).flat_map(|decision| &decision.clusters);
        let is_elsewhere = |cluster: &&Arc<ManagedCluster>| set_of(cluster).is_none_or(|set| !asked.contains(set));
        let elsewhere: BTreeMap<&str, _> = decided
            .filter_map(|name| self.clusters.get(name).filter(is_elsewhere))
            .map(|cluster| (cluster.name.as_str(), cluster))
            .collect();
        found.extend(elsewhere.into_values());
        found
    }

    /// Number of comparisons in a Placement's run: clusters times rules.
    pub fn looks(&self, known: &ObservedPlacement) -> usize {
        self.clusters.len().saturating_mul(known.rules)
    }

    /// Names of the decisions whose label names a Placement.
    pub fn labelled(&self, (namespace, name): &Key) -> impl Iterator<Item = &String> {
        self.decisions.of(namespace, name).map(|decision| &decision.name)
    }

    /// Keeps the Placements that exist, and counts a change of their input.
    fn woken(&mut self, mut woken: Woken) -> Woken {
        woken.retain(|key| {
            let known = self.placement_mut(key);
            known.map(|known| known.inputs = known.inputs.wrapping_add(1)).is_some()
        });
        woken
    }

    fn put_placement(&mut self, key: Key, object: &Value, now: OffsetDateTime, is_listed: bool) -> Woken {
        let list = self.lists[Of::Placement.index()];
        let names = self.placements.entry(key.0.clone()).or_default();
        let is_news = if let Some(known) = names.get_mut(&key.1) {
            let is_anew = is_listed && known.seen_in != list;
            known.seen_in = list;
            known.update(object, now, is_anew)
        } else {
            names.insert(key.1.clone(), ObservedPlacement { seen_in: list, ..ObservedPlacement::new(object) });
            true
        };
        if is_news { Woken::from([key]) } else { Woken::new() }
    }

    /// Wakes no Placement: the hub deletes its decisions with it.
    fn remove_placement(&mut self, (namespace, name): &Key, version: Option<&str>) -> Woken {
        if let Some(names) = self.placements.get_mut(namespace) {
            if names.get(name).is_some_and(|known| is_older(version, &known.version)) {
                return Woken::new();
            }
            names.remove(name);
            if names.is_empty() {
                self.placements.remove(namespace);
            }
        }
        let own = format!("{name}-decision-");
        self.sent.retain(|key, _| key.0 != *namespace || !key.1.starts_with(&own));
        Woken::new()
    }

    fn put_binding(&mut self, object: Value) -> Woken {
        let binding = ManagedClusterSetBinding::from(object);
        self.hold.came_back(Of::Binding, &binding.namespace, &binding.name);
        let (namespace, set) = (binding.namespace.clone(), binding.name.clone());
        self.bound.entry(set.clone()).or_default().insert(namespace.clone());
        let before = self.bindings.entry(namespace.clone()).or_default().insert(set.clone(), binding);
        if before.is_some() { Woken::new() } else { self.all_in(&namespace).collect() }
    }

    fn remove_binding(&mut self, (namespace, set): &Key) -> Woken {
        if let Some(names) = self.bindings.get_mut(namespace) {
            names.remove(set);
            if names.is_empty() {
                self.bindings.remove(namespace);
            }
        }
        if let Some(namespaces) = self.bound.get_mut(set) {
            namespaces.remove(namespace);
            if namespaces.is_empty() {
                self.bound.remove(set);
            }
        }
        self.all_in(namespace).collect()
    }

    fn put_score(&mut self, key: &Key, object: Value) -> Woken {
        let score = AddOnPlacementScore::from(object);
        // Writing the same would copy all scores while a run holds a snapshot of them.
        if self.scores.get(&score.cluster, &score.resource) == Some(&score) {
            return Woken::new();
        }
        Arc::make_mut(&mut self.scores).put(score);
        self.scored(key)
    }

    fn remove_score(&mut self, key: &Key) -> Woken {
        if self.scores.get(&key.0, &key.1).is_none() {
            return Woken::new();
        }
        Arc::make_mut(&mut self.scores).remove(&key.0, &key.1);
        self.scored(key)
    }

    /// Placements that use a cluster's score of a resource.
    fn scored(&self, (cluster, resource): &Key) -> Woken {
        let Some(cluster) = self.clusters.get(cluster) else { return Woken::new() };
        self.seeing(&[cluster], |known| known.asks_for(resource) || known.has_expressions())
    }
}

/// Namespace, empty for kinds without one, and name.
pub fn key(object: &Value) -> Key {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

fn pairs<V>(all: &HashMap<String, BTreeMap<String, V>>) -> impl Iterator<Item = (&String, &String)> {
    all.iter().flat_map(|(namespace, names)| names.keys().map(move |name| (namespace, name)))
}

#[cfg(test)]
mod tests;
