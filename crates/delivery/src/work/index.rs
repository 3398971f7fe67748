//! Entries of a status, found by their manifest.

use std::collections::HashMap;

use super::status::{ManifestCondition, ResourceMeta};

/// What is told of manifests, to be found in its place, or by its identity in another place, if
/// that is there once.
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
        // What has no identity is found only in its place.
        elsewhere.remove(&[""; 6]);
        Self { places, elsewhere }
    }

    /// What is told of the manifest `meta`.
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
