//! The objects of the hub that sets of works depend on, and which sets need a pass when one of them
//! changes.
//!
//! No IO and no clock: watches put objects in here, and so do writers, with the hub's answers.

mod chosen;
mod works;

pub use self::chosen::Chosen;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::mem;
use std::sync::Arc;

use delivery::rollout::DecisionGroup;
use delivery::work::replica_set::{ReplicaSet, SET_LABEL, Work};
use serde_json::Value;
use time::OffsetDateTime;

use self::chosen::Decisions;
use self::works::Works;
use super::kinds::Of;
use crate::parts::watched::is_older;
use crate::wakes::Key;

#[derive(Default)]
pub struct World {
    /// Whether a work without a rule for `Progressing` does not get that condition, as upstream.
    needs_rules: bool,
    /// By namespace and name.
    sets: HashMap<String, BTreeMap<String, ObservedSet>>,
    /// By their set, which may not exist.
    works: HashMap<Key, Works>,
    /// The set of each work.
    owners: HashMap<Key, Key>,
    placements: HashMap<Key, Chosen>,
    decisions: Decisions,
    /// The objects in the present list so far, and those written since it began, by [`Of::index`].
    listing: [Option<HashSet<Key>>; Of::ALL.len()],
}

/// The last known state of a set.
pub struct ObservedSet {
    pub set: Arc<ReplicaSet>,
    pub uid: String,
    pub version: String,
    pub finalizers: Vec<String>,
    /// Time of the last write of its status.
    pub told_at: Option<OffsetDateTime>,
    /// Since when works stay because its decisions may be incomplete.
    pub held_since: Option<OffsetDateTime>,
    /// Time of the last change in its Placements' decisions.
    pub decided_at: OffsetDateTime,
    /// Time of its last pass.
    pub worked_at: Option<OffsetDateTime>,
    /// Clusters where a work may have been created although no answer came.
    pub unsure: BTreeSet<String>,
    /// Reported hand-overs: from which Placement to which.
    pub told_handovers: BTreeSet<(String, String)>,
}

// === impl ObservedSet ===

impl ObservedSet {
    /// A set that is new.
    fn new(set: Arc<ReplicaSet>, uid: String, version: String, finalizers: Vec<String>, now: OffsetDateTime) -> Self {
        Self {
            set,
            uid,
            version,
            finalizers,
            told_at: None,
            held_since: None,
            decided_at: now,
            worked_at: None,
            unsure: BTreeSet::new(),
            told_handovers: BTreeSet::new(),
        }
    }
}

/// Sets that need a pass.
pub type Woken = BTreeSet<Key>;

// === impl World ===

impl World {
    pub fn new(needs_rules: bool) -> Self {
        Self { needs_rules, ..Self::default() }
    }

    /// A list of a kind begins.
    pub fn begin_list(&mut self, of: Of) {
        self.listing[of.index()] = Some(HashSet::new());
    }

    /// An object is in the present list. It replaces the known one regardless of its version,
    /// unless that was written since the list began: after a restore of the hub, versions may be
    /// lower than before.
    pub fn put_listed(&mut self, of: Of, object: Value, now: OffsetDateTime) -> Woken {
        let is_later = self.listing[of.index()].as_ref().is_some_and(|seen| seen.contains(&key(&object)));
        self.put_at(of, object, now, !is_later)
    }

    /// Removes the known objects that were not in the list.
    pub fn end_list(&mut self, of: Of, now: OffsetDateTime) -> Woken {
        let Some(seen) = self.listing[of.index()].take() else { return Woken::new() };
        let gone: Vec<Key> = self.keys(of).into_iter().filter(|key| !seen.contains(key)).collect();
        gone.iter().flat_map(|key| self.remove(of, key, None, now)).collect()
    }

    /// An object exists or has changed.
    pub fn put(&mut self, of: Of, object: Value, now: OffsetDateTime) -> Woken {
        self.put_at(of, object, now, false)
    }

    fn put_at(&mut self, of: Of, object: Value, now: OffsetDateTime, is_anew: bool) -> Woken {
        let key = key(&object);
        if let Some(seen) = &mut self.listing[of.index()] {
            seen.insert(key.clone());
        }
        let version = text(&object, "resourceVersion");
        let known = self.version(of, &key);
        if known.is_some_and(|known| known == version || !is_anew && is_older(Some(&version), known)) {
            return Woken::new();
        }
        match of {
            Of::Set => self.put_set(key, object, version, now),
            Of::Work => self.put_work(&key, object, now),
            Of::Placement => {
                let chosen = Chosen::read(&object, version);
                let before = self.placements.insert(key.clone(), chosen.clone());
                if before.is_some_and(|before| before.says_as(&chosen)) {
                    Woken::new()
                } else {
                    self.decided(&key, now)
                }
            }
            Of::Decision => {
                let placements = self.decisions.put(&key, &object, version);
                placements.iter().flat_map(|placement| self.decided(placement, now)).collect()
            }
        }
    }

    /// An object is gone. With a version, at that version: the known object may be a later one of
    /// its name.
    pub fn remove(&mut self, of: Of, key: &Key, version: Option<&str>, now: OffsetDateTime) -> Woken {
        if self.version(of, key).is_some_and(|known| is_older(version, known)) {
            return Woken::new();
        }
        match of {
            Of::Set => {
                self.remove_set(key);
                Woken::new()
            }
            Of::Work => self.remove_work(key),
            Of::Placement => {
                self.placements.remove(key);
                self.decided(key, now)
            }
            Of::Decision => {
                let placements = self.decisions.remove(key);
                placements.iter().flat_map(|placement| self.decided(placement, now)).collect()
            }
        }
    }

    pub fn set(&self, (namespace, name): &Key) -> Option<&ObservedSet> {
        self.sets.get(namespace)?.get(name)
    }

    pub fn set_mut(&mut self, (namespace, name): &Key) -> Option<&mut ObservedSet> {
        self.sets.get_mut(namespace)?.get_mut(name)
    }

    /// The hand-overs of a set's works that were not reported yet. They count as reported from now
    /// on.
    pub fn tell_handovers(&mut self, key: &Key, all: BTreeSet<(String, String)>) -> Vec<(String, String)> {
        let Some(known) = self.set_mut(key) else { return Vec::new() };
        let before = mem::replace(&mut known.told_handovers, all);
        known.told_handovers.difference(&before).cloned().collect()
    }

    /// The works of a set.
    pub fn works(&self, set: &Key) -> impl Iterator<Item = &Work> {
        self.works.get(set).into_iter().flat_map(Works::iter)
    }

    /// A work of a set.
    pub fn work(&self, set: &Key, key: &Key) -> Option<&Work> {
        self.works.get(set)?.get(key)
    }

    pub fn placement(&self, key: &Key) -> Option<&Chosen> {
        self.placements.get(key)
    }

    /// The decision groups of a Placement.
    ///
    /// # Errors
    ///
    /// Fails if a decision's label is no index of a group.
    pub fn groups(&self, placement: &Key) -> Result<Vec<DecisionGroup<'_>>, String> {
        self.decisions.groups(placement)
    }

    /// Whether decisions are being listed again: some known ones may be gone.
    pub fn are_decisions_listed(&self) -> bool {
        self.listing[Of::Decision.index()].is_some()
    }

    fn version(&self, of: Of, key: &Key) -> Option<&str> {
        match of {
            Of::Set => self.set(key).map(|known| known.version.as_str()),
            Of::Work => {
                let works = self.works.get(self.owners.get(key)?)?;
                works.get(key).map(|work| work.resource_version.as_str())
            }
            Of::Placement => self.placements.get(key).map(|chosen| chosen.version.as_str()),
            Of::Decision => self.decisions.version(key),
        }
    }

    fn keys(&self, of: Of) -> Vec<Key> {
        match of {
            Of::Set => {
                let within = |(namespace, names): (&String, &BTreeMap<String, ObservedSet>)| {
                    names.keys().map(|name| (namespace.clone(), name.clone())).collect::<Vec<_>>()
                };
                self.sets.iter().flat_map(within).collect()
            }
            Of::Work => self.owners.keys().cloned().collect(),
            Of::Placement => self.placements.keys().cloned().collect(),
            Of::Decision => self.decisions.keys().cloned().collect(),
        }
    }

    fn put_set(&mut self, key: Key, object: Value, version: String, now: OffsetDateTime) -> Woken {
        let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
        let finalizers = finalizers.filter_map(Value::as_str).map(str::to_owned).collect();
        let uid = text(&object, "uid");
        let set = Arc::new(ReplicaSet::from(object));
        let works = self.works.entry(key.clone()).or_default();
        works.follow(Some(&set), self.needs_rules, now);
        match self.set_mut(&key).filter(|known| known.uid == uid) {
            Some(known) => {
                (known.set, known.version, known.finalizers) = (set, version, finalizers);
            }
            None => self.put_new_set(&key, ObservedSet::new(set, uid, version, finalizers, now)),
        }
        Woken::from([key])
    }

    fn put_new_set(&mut self, (namespace, name): &Key, set: ObservedSet) {
        self.sets.entry(namespace.clone()).or_default().insert(name.clone(), set);
    }

    /// Its works stay until they go themselves: another set of its name gets them.
    fn remove_set(&mut self, key: &Key) {
        if let Some(names) = self.sets.get_mut(&key.0) {
            names.remove(&key.1);
        }
        if self.works.get(key).is_some_and(Works::is_empty) {
            self.works.remove(key);
        }
    }

    fn put_work(&mut self, key: &Key, object: Value, now: OffsetDateTime) -> Woken {
        // A namespace has no dot.
        let label = object["metadata"]["labels"][SET_LABEL].as_str().and_then(|label| label.split_once('.'));
        let owner = label.map(|(namespace, name)| (namespace.to_owned(), name.to_owned()));
        let mut woken = Woken::new();
        if self.owners.get(key) != owner.as_ref() {
            woken.append(&mut self.remove_work(key));
        }
        if let Some(owner) = owner {
            self.owners.insert(key.clone(), owner.clone());
            self.works.entry(owner.clone()).or_default().put(key.clone(), object, now);
            woken.insert(owner);
        }
        woken
    }

    fn remove_work(&mut self, key: &Key) -> Woken {
        let Some(owner) = self.owners.remove(key) else { return Woken::new() };
        let is_left = self.set(&owner).is_some();
        if let Some(works) = self.works.get_mut(&owner) {
            works.remove(key);
            if works.is_empty() && !is_left {
                self.works.remove(&owner);
            }
        }
        Woken::from([owner])
    }

    /// A Placement's choice has changed: returns the sets that name it.
    fn decided(&mut self, placement: &Key, now: OffsetDateTime) -> Woken {
        let sets = self.referring(placement);
        for set in &sets {
            if let Some(known) = self.set_mut(set) {
                known.decided_at = now;
            }
        }
        sets
    }

    /// Sets that name a Placement.
    fn referring(&self, (namespace, placement): &Key) -> Woken {
        let sets = self.sets.get(namespace).into_iter().flatten();
        let names = |known: &ObservedSet| known.set.placements.iter().any(|reference| reference.name == *placement);
        sets.filter(|(_, known)| names(known)).map(|(name, _)| (namespace.clone(), name.clone())).collect()
    }
}

/// Namespace and name.
pub fn key(object: &Value) -> Key {
    (text(object, "namespace"), text(object, "name"))
}

fn text(object: &Value, field: &str) -> String {
    object["metadata"][field].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
