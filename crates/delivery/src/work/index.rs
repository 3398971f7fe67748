//! Finds the entries of a status by their manifest, and merges new entries with them.

use std::collections::HashMap;

use time::OffsetDateTime;

use super::status::{ManifestCondition, ResourceMeta};
use crate::condition::{self, Condition};

/// Reports about manifests: found at their position, or elsewhere by identity, if that occurs once.
#[derive(Debug, Clone)]
pub struct Index<'m> {
    places: HashMap<(usize, Key<'m>), &'m ManifestCondition>,
    elsewhere: HashMap<Key<'m>, Option<&'m ManifestCondition>>,
}

/// Group, version, kind, resource, namespace, name.
type Key<'m> = [&'m str; 6];

// === impl Index ===

impl<'m> Index<'m> {
    pub fn new(manifests: &'m [ManifestCondition]) -> Self {
        let places = manifests.iter().map(|one| ((one.resource_meta.ordinal, key(&one.resource_meta)), one)).collect();
        let mut elsewhere: HashMap<Key<'_>, Option<&ManifestCondition>> = HashMap::new();
        for one in manifests {
            let known = elsewhere.entry(key(&one.resource_meta));
            known.and_modify(|known| *known = None).or_insert(Some(one));
        }
        // A manifest without an identity is found only at its position.
        elsewhere.remove(&[""; 6]);
        Self { places, elsewhere }
    }

    /// The report about the manifest `meta`.
    pub fn find(&self, meta: &ResourceMeta) -> Option<&'m ManifestCondition> {
        let key = key(meta);
        let place = self.places.get(&(meta.ordinal, key)).copied();
        place.or_else(|| self.elsewhere.get(&key).copied().flatten())
    }
}

fn key(meta: &ResourceMeta) -> Key<'_> {
    let ResourceMeta { ordinal: _, group, version, kind, resource, name, namespace } = meta;
    [group, version, kind, resource, namespace, name]
}

/// The entries `new`, each with the conditions and values that its manifest had before.
pub fn merged(old: &[ManifestCondition], new: Vec<ManifestCondition>, now: OffsetDateTime) -> Vec<ManifestCondition> {
    let index = Index::new(old);
    new.into_iter().map(|new| one(index.find(&new.resource_meta), new, now)).collect()
}

fn one(known: Option<&ManifestCondition>, new: ManifestCondition, now: OffsetDateTime) -> ManifestCondition {
    let conditions = known.map(|known| known.conditions.clone()).unwrap_or_default();
    ManifestCondition {
        resource_meta: new.resource_meta,
        status_feedback: known.map(|known| known.status_feedback.clone()).unwrap_or_default(),
        conditions: conditions_merged(conditions, new.conditions, now),
    }
}

/// A condition of another generation is another one: it goes to the end, with the current time.
fn conditions_merged(old: Vec<Condition>, new: Vec<Condition>, now: OffsetDateTime) -> Vec<Condition> {
    let mut all = old;
    for one in new {
        let is_of_before = |known: &Condition| known.observed_generation != one.observed_generation;
        if condition::find(&all, &one.kind).is_some_and(is_of_before) {
            condition::remove(&mut all, &one.kind);
        }
        condition::set(&mut all, one, now);
    }
    all
}
