//! Objects whose kind the member lacks, and whether its definition comes.

use std::collections::{HashMap, HashSet};

use delivery::identity::{DEFINITIONS, Identity};

use super::{Scope, Sights};

// === impl Scope ===

impl Scope {
    /// The definitions of a member's kinds.
    pub fn definitions() -> Self {
        let [group, version, resource] = [DEFINITIONS.0, "v1", DEFINITIONS.1].map(str::to_owned);
        Self { group, version, resource, namespace: String::new() }
    }

    pub(super) fn is_of_definitions(&self) -> bool {
        (&*self.group, &*self.resource) == DEFINITIONS
    }
}

// === impl Sights ===

impl Sights {
    /// Sets the objects of a work whose kind is missing.
    pub fn awaits(&self, work: &str, objects: HashSet<Identity>) {
        self.0.lock().awaited.set(work, objects);
    }

    /// Whether the definitions are followed for a work.
    #[cfg(test)]
    pub fn follows_definitions(&self, work: &str) -> bool {
        self.0.lock().followed.get(&Scope::definitions()).is_some_and(|followed| followed.works.contains(work))
    }

    /// As a follower that saw a definition of that name.
    #[cfg(test)]
    pub fn defined(&self, name: &str) -> Vec<String> {
        group_of(name).map(|group| self.0.lock().awaited.defined(group)).unwrap_or_default()
    }
}

/// The group of a definition, by its name.
pub fn group_of(name: &str) -> Option<&str> {
    name.split_once('.').map(|(_, group)| group)
}

/// The objects of a member's works whose kind is missing, and the groups whose definitions have
/// changed. A member may report any number of changes: each of them costs little, and objects are
/// gathered when a work is processed.
#[derive(Default)]
pub struct Awaited {
    /// By work, then by group.
    works: HashMap<String, HashMap<String, Vec<Identity>>>,
    groups: HashMap<String, Group>,
}

/// The works that lack a kind of one group.
#[derive(Default)]
struct Group {
    waiting: HashSet<String>,
    /// Works that were not processed since a definition of the group changed.
    changed: HashSet<String>,
    /// The group's definitions in the last list, as a number; none before the first list.
    listed: Option<u64>,
}

// === impl Awaited ===

impl Awaited {
    /// Sets the objects of a work.
    pub fn set(&mut self, work: &str, objects: HashSet<Identity>) {
        let mut by_group = HashMap::<String, Vec<Identity>>::new();
        for object in objects {
            by_group.entry(object.group.clone()).or_default().push(object);
        }
        let before = self.works.remove(work).unwrap_or_default();
        for name in before.keys().filter(|name| !by_group.contains_key(*name)) {
            self.leave(work, name);
        }
        for name in by_group.keys().filter(|name| !before.contains_key(*name)) {
            let group = self.groups.entry(name.clone()).or_default();
            group.waiting.insert(work.to_owned());
            // The last list may be older than this work's own look at the member's kinds.
            group.listed = None;
        }
        if !by_group.is_empty() {
            self.works.insert(work.to_owned(), by_group);
        }
    }

    /// Whether any work lacks a kind of the group.
    pub fn has(&self, group: &str) -> bool {
        self.groups.contains_key(group)
    }

    /// A definition of the group was created or changed. Returns the works to wake: those for which
    /// no earlier change is waiting.
    pub fn defined(&mut self, group: &str) -> Vec<String> {
        let Some(group) = self.groups.get_mut(group) else { return Vec::new() };
        let woken: Vec<String> = group.waiting.drain().collect();
        group.changed.extend(woken.iter().cloned());
        woken
    }

    /// The definitions of a list, as a number by group. Only another number than in the last list
    /// is a change: otherwise each list would begin anew to look for kinds that do not come.
    pub fn listed(&mut self, definitions: HashMap<String, u64>) -> Vec<String> {
        let mut woken = Vec::new();
        for (name, number) in definitions {
            let group = self.groups.get_mut(&name);
            if group.is_some_and(|group| group.listed.replace(number) != Some(number)) {
                woken.extend(self.defined(&name));
            }
        }
        woken
    }

    /// The objects of a work in groups whose definitions have changed since the last call.
    pub fn take(&mut self, work: &str) -> Vec<Identity> {
        let mut taken = Vec::new();
        for (name, objects) in self.works.get(work).into_iter().flatten() {
            if let Some(group) = self.groups.get_mut(name)
                && group.changed.remove(work)
            {
                group.waiting.insert(work.to_owned());
                taken.extend(objects.iter().cloned());
            }
        }
        taken
    }

    fn leave(&mut self, work: &str, name: &str) {
        let Some(group) = self.groups.get_mut(name) else { return };
        group.waiting.remove(work);
        group.changed.remove(work);
        if group.waiting.is_empty() && group.changed.is_empty() {
            self.groups.remove(name);
        }
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
        let seen = sights.0.lock();
        assert!(seen.awaited.works.is_empty() && seen.awaited.groups.is_empty(), "nothing is left");
    }

    #[test]
    fn of_many_changes_of_a_group_the_first_alone_wakes_a_work_until_it_is_processed() {
        let sights = Sights::default();
        let late = |name: usize| Identity { group: "a.io".into(), name: name.to_string(), ..Identity::default() };
        let lacking: HashSet<Identity> = (0..1_500).map(late).collect();
        sights.awaits("w", lacking.clone());
        assert_eq!(sights.defined("things.a.io"), ["w"]);
        assert!((0..1_000).all(|number| sights.defined(&format!("others{number}.a.io")).is_empty()));
        assert!(sights.0.lock().changed.is_empty(), "no object is gathered before the work is processed");
        // It still lacks them, and another begins to.
        sights.awaits("w", lacking.clone());
        sights.awaits("v", HashSet::from([late(0)]));
        assert_eq!(sights.defined("things.a.io"), ["v"]);
        assert_eq!(sights.take_changed("w"), lacking);
        assert!(sights.take_changed("w").is_empty());
        assert_eq!(sights.defined("things.a.io"), ["w"]);
    }

    #[test]
    fn a_list_that_is_as_the_last_one_is_no_news() {
        let sights = Sights::default();
        let listed = |numbers: &[(&str, u64)]| {
            let definitions = numbers.iter().map(|(group, number)| ((*group).to_owned(), *number)).collect();
            let woken = sights.0.lock().awaited.listed(definitions);
            for work in &woken {
                drop(sights.take_changed(work));
            }
            woken
        };
        let late = || HashSet::from([Identity { group: "a.io".into(), ..Identity::default() }]);
        sights.awaits("w", late());
        assert!(listed(&[]).is_empty() && listed(&[("b.io", 1)]).is_empty());
        assert_eq!(listed(&[("a.io", 1)]), ["w"]);
        sights.awaits("w", late());
        assert!(listed(&[("a.io", 1)]).is_empty());
        assert_eq!(listed(&[("a.io", 2)]), ["w"]);
        sights.awaits("v", late());
        assert_eq!(listed(&[("a.io", 2)]).len(), 2, "it is news for the work that is new");
    }
}
