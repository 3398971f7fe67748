//! What became of the manifests of a work in one pass, and what of that is tracked.

use std::collections::{HashMap, HashSet};

use delivery::identity::{Identity, Tracked};
use delivery::manifests::Manifest;

use super::begun::Kept;

/// What became of the manifests.
pub struct Done<'m> {
    pub manifests: &'m [Manifest],
    /// By ordinal; none: it was not looked at.
    pub outcomes: Vec<Option<Kept>>,
}

// === impl Done ===

impl Done<'_> {
    /// All that is wanted, whatever became of it.
    pub fn wanted(&self) -> Vec<Tracked> {
        let wanted = self.manifests.iter().filter(|manifest| manifest.object.is_ok());
        let tracked = |manifest: &Manifest| Tracked {
            identity: manifest.identity(),
            version: manifest.version.clone(),
            uid: String::new(),
        };
        wanted.map(tracked).collect()
    }

    /// What is listed where a pass did not come to its end: nothing is taken off.
    pub fn listed(&self, before: &[Tracked]) -> Vec<Tracked> {
        let mut listed = self.tracked(before);
        let known: HashSet<Identity> = listed.iter().map(|one| one.identity.clone()).collect();
        listed.extend(before.iter().filter(|one| !known.contains(&one.identity)).cloned());
        listed
    }

    /// What of that is tracked: what is owned and there, and, where that is not known, what was.
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
