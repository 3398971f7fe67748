//! The outcomes of a work's manifests in one pass, and which of them are tracked.

use std::collections::{HashMap, HashSet};

use delivery::identity::{Identity, Tracked};
use delivery::manifests::{Fault, Manifest};

use super::begun::Kept;

/// The outcomes of manifests.
pub struct Done<'m> {
    pub manifests: &'m [Manifest],
    /// By ordinal; none if a manifest was not processed.
    pub outcomes: Vec<Option<Kept>>,
}

// === impl Done ===

impl Done<'_> {
    /// All wanted objects, with any outcome.
    pub fn wanted(&self) -> Vec<Tracked> {
        let wanted = self.manifests.iter().filter(|manifest| manifest.object.is_ok());
        let tracked = |manifest: &Manifest| Tracked {
            identity: manifest.identity(),
            version: manifest.version.clone(),
            uid: String::new(),
        };
        wanted.map(tracked).collect()
    }

    /// The objects whose kind the member lacks, and may get.
    pub fn lacking(&self) -> HashSet<Identity> {
        let is_lacking =
            |manifest: &&Manifest| matches!(manifest.object, Err(Fault::UnknownKind(_))) && !manifest.group.is_empty();
        self.manifests.iter().filter(is_lacking).map(Manifest::identity).collect()
    }

    /// The objects to list if a pass did not end: none is removed from the list.
    pub fn listed(&self, before: &[Tracked]) -> Vec<Tracked> {
        let mut listed = self.tracked(before);
        let known: HashSet<Identity> = listed.iter().map(|one| one.identity.clone()).collect();
        listed.extend(before.iter().filter(|one| !known.contains(&one.identity)).cloned());
        listed
    }

    /// The tracked objects: those that are owned and exist, and, if that is unknown, those tracked
    /// `before`.
    pub fn tracked(&self, before: &[Tracked]) -> Vec<Tracked> {
        let wanted = self.manifests.iter().zip(&self.outcomes).filter(|(manifest, _)| manifest.object.is_ok());
        let before: HashMap<&Identity, &Tracked> = before.iter().map(|one| (&one.identity, one)).collect();
        let each = wanted.filter_map(|(manifest, outcome)| {
            let identity = manifest.identity();
            let known = || before.get(&identity).map(|one| (*one).clone());
            let Some(outcome) = outcome else { return known() };
            match (&outcome.result, outcome.is_owned, outcome.uid.clone()) {
                (Ok(()), true, Some(uid)) => Some(Tracked { version: manifest.version.clone(), uid, identity }),
                (Ok(()), false, _) => None,
                _ => known(),
            }
        });
        each.collect()
    }
}
