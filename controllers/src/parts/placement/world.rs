//! What of the hub a choice depends on, and who has to be looked at again when some of it changes.
//!
//! No IO and no clock: watches put objects in here, and each answers with the Placements that can
//! see the difference.

mod contest;
mod decisions;
mod known;
mod members;

pub use self::contest::Contest;
pub use self::decisions::Held;
pub use self::known::Known;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use placement::Input;
use placement::index::{Decisions, Scores};
use placement::objects::{AddOnPlacementScore, ManagedCluster, ManagedClusterSetBinding};
use serde_json::Value;
use time::OffsetDateTime;

use self::members::Set;
use super::kinds::Of;
use super::status::decided_generation;
use crate::wakes::Key;

#[derive(Default)]
pub struct World {
    /// By namespace and name.
    placements: HashMap<String, BTreeMap<String, Known>>,
    sets: BTreeMap<String, Set>,
    bindings: HashMap<String, BTreeMap<String, ManagedClusterSetBinding>>,
    /// Namespaces that a set is bound in.
    bound: HashMap<String, BTreeSet<String>>,
    clusters: BTreeMap<String, ManagedCluster>,
    scores: Scores,
    score_keys: HashSet<Key>,
    decisions: Decisions,
    held: HashMap<Key, Held>,
    /// Decisions that we are writing.
    writing: HashSet<Key>,
    /// The lists that we sent last, of decisions of Placements that are there.
    sent: HashMap<Key, Vec<String>>,
}

/// Placements to look at.
pub type Woken = BTreeSet<Key>;

// === impl World ===

impl World {
    /// An object is there or has changed.
    pub fn put(&mut self, of: Of, object: Value, now: OffsetDateTime) -> Woken {
        let key = key(&object);
        let woken = match of {
            Of::Placement => self.put_placement(key, &object, now),
            Of::Decision => self.put_decision(&key, object, now),
            Of::Cluster => self.put_cluster(object),
            Of::Set => self.put_set(&object),
            Of::Binding => self.put_binding(object),
            Of::Score => self.put_score(&key, object),
        };
        self.woken(woken)
    }

    /// An object is gone. With a version, at that: what is known may be a later one of its name.
    pub fn remove(&mut self, of: Of, key: &Key, version: Option<&str>, now: OffsetDateTime) -> Woken {
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

    /// All objects of a kind.
    pub fn keys(&self, of: Of) -> Vec<Key> {
        let alone = |name: &String| (String::new(), name.clone());
        let within = |(namespace, name): (&String, &String)| (namespace.clone(), name.clone());
        match of {
            Of::Placement => pairs(&self.placements).map(within).collect(),
            Of::Binding => pairs(&self.bindings).map(within).collect(),
            Of::Cluster => self.clusters.keys().map(alone).collect(),
            Of::Set => self.sets.keys().map(alone).collect(),
            Of::Decision => self.held.keys().cloned().collect(),
            Of::Score => self.score_keys.iter().cloned().collect(),
        }
    }

    pub fn placement(&self, (namespace, name): &Key) -> Option<&Known> {
        self.placements.get(namespace)?.get(name)
    }

    pub fn placement_mut(&mut self, (namespace, name): &Key) -> Option<&mut Known> {
        self.placements.get_mut(namespace)?.get_mut(name)
    }

    /// Calls `run` with what the run of a Placement looks at.
    pub fn with_input<T>(&self, known: &Known, now: OffsetDateTime, run: impl FnOnce(&Input<'_>) -> T) -> T {
        let bindings = self.bindings.get(&known.key.0);
        let bindings: Vec<_> = bindings.into_iter().flat_map(BTreeMap::values).collect();
        let sets: Vec<_> = bindings.iter().filter_map(|binding| Some(&self.sets.get(&binding.name)?.set)).collect();
        let clusters: Vec<_> = self.clusters.values().collect();
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

    /// Names of the decisions that are labelled with a Placement.
    pub fn labelled(&self, (namespace, name): &Key) -> impl Iterator<Item = &String> {
        self.decisions.of(namespace, name).map(|decision| &decision.name)
    }

    /// Those of them that there are; each has another input than before.
    fn woken(&mut self, mut woken: Woken) -> Woken {
        woken.retain(|key| {
            let known = self.placement_mut(key);
            known.map(|known| known.inputs = known.inputs.wrapping_add(1)).is_some()
        });
        woken
    }

    fn put_placement(&mut self, key: Key, object: &Value, now: OffsetDateTime) -> Woken {
        let names = self.placements.entry(key.0.clone()).or_default();
        let is_news = if let Some(known) = names.get_mut(&key.1) {
            known.update(object, now)
        } else {
            names.insert(key.1.clone(), Known::new(object));
            true
        };
        if is_news { Woken::from([key]) } else { Woken::new() }
    }

    /// Nobody is to be looked at by that: its decisions go with it, by the hub.
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
        self.score_keys.insert(key.clone());
        let is_same = self.scores.put(score.clone()).is_some_and(|before| before == score);
        if is_same { Woken::new() } else { self.scored(key) }
    }

    fn remove_score(&mut self, key: &Key) -> Woken {
        self.score_keys.remove(key);
        let before = self.scores.remove(&key.0, &key.1);
        if before.is_none() { Woken::new() } else { self.scored(key) }
    }

    /// Placements that ask for a cluster's score of a resource.
    fn scored(&self, (cluster, resource): &Key) -> Woken {
        let Some(cluster) = self.clusters.get(cluster) else { return Woken::new() };
        self.seeing(&[cluster], |known| known.asks_for(resource) || known.has_expressions())
    }
}

/// Namespace, which is empty where there is none, and name.
pub fn key(object: &Value) -> Key {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

/// Whether a version comes before one that is known. Where they are no numbers, nobody can tell.
fn is_older(version: Option<&str>, known: &str) -> bool {
    let number = |text: &str| text.parse::<u64>().ok();
    let older = |version| Some(number(version)? < number(known)?);
    version.and_then(older).unwrap_or(false)
}

fn pairs<V>(all: &HashMap<String, BTreeMap<String, V>>) -> impl Iterator<Item = (&String, &String)> {
    all.iter().flat_map(|(namespace, names)| names.keys().map(move |name| (namespace, name)))
}

#[cfg(test)]
mod tests;
