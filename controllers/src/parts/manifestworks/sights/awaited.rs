//! Objects whose kind the member lacks, and whether its definition comes.

use std::collections::HashSet;

use delivery::identity::Identity;

use super::{Scope, Seen, Sights};

const GROUP: &str = "apiextensions.k8s.io";
const RESOURCE: &str = "customresourcedefinitions";

// === impl Scope ===

impl Scope {
    /// The definitions of a member's kinds.
    pub fn definitions() -> Self {
        let [group, version, resource] = [GROUP, "v1", RESOURCE].map(str::to_owned);
        Self { group, version, resource, namespace: String::new() }
    }

    pub(super) fn is_of_definitions(&self) -> bool {
        self.group == GROUP && self.resource == RESOURCE
    }
}

// === impl Sights ===

impl Sights {
    /// Sets the objects of a work whose kind is missing.
    pub fn awaits(&self, work: &str, objects: HashSet<Identity>) {
        let mut seen = self.0.lock();
        if objects.is_empty() {
            seen.awaited.remove(work);
        } else {
            seen.awaited.insert(work.to_owned(), objects);
        }
    }

    /// As a follower that saw a definition of that name.
    #[cfg(test)]
    pub fn defined(&self, name: &str) -> Vec<String> {
        self.0.lock().defined(name)
    }
}

// === impl Seen ===

impl Seen {
    /// A definition of that name exists, or has changed. Returns the works with objects of its
    /// group whose kind was missing: these count as changed.
    pub(super) fn defined(&mut self, name: &str) -> Vec<String> {
        let Some((_, group)) = name.split_once('.') else { return Vec::new() };
        let mut woken = Vec::new();
        for (work, objects) in &self.awaited {
            let mut of_group = objects.iter().filter(|one| one.group == group).peekable();
            if of_group.peek().is_some() {
                let changed = self.changed.entry(work.clone()).or_default();
                changed.extend(of_group.map(|one| (one.clone(), None)));
                woken.push(work.clone());
            }
        }
        woken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_wakes_the_works_that_lack_a_kind_of_its_group() {
        let (sights, late) = (Sights::default(), |group: &str| Identity { group: group.into(), ..Identity::default() });
        sights.awaits("w", HashSet::from([late("a.io"), late("b.io")]));
        sights.awaits("v", HashSet::from([late("b.io")]));
        assert!(sights.defined("things.c.io").is_empty() && sights.defined("a.io").is_empty());
        assert_eq!(sights.defined("things.a.io"), ["w"]);
        assert_eq!(sights.take_changed("w"), HashSet::from([late("a.io")]));
        sights.awaits("w", HashSet::new());
        assert_eq!(sights.defined("things.b.io"), ["v"]);
        sights.forget("v");
        assert!(sights.defined("things.b.io").is_empty() && sights.take_changed("v").is_empty());
    }
}
