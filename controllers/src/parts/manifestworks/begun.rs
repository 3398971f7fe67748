//! What a pass had done when its turn was over. The next one goes on there: what one turn is too
//! short for would never come to an end otherwise.

use std::collections::{HashMap, HashSet};

use delivery::identity::Identity;
use delivery::manifests::Manifest;
use delivery::work::{Availability, Failed};

use super::discovery::Found;
use super::failure::Failure;
use super::memory::Memory;
use super::removal::{MayDelete, Removed};
use super::telling::Said;

#[derive(Default)]
pub struct Begun {
    generation: i64,
    /// Whether a turn before this one had begun it.
    is_more: bool,
    /// Which kinds the member has, of those that are wanted.
    pub kinds: Found,
    /// What became of manifests, by ordinal; none: it was not looked at.
    pub outcomes: Vec<Option<Kept>>,
    /// What has changed since it was looked at: for the pass after this one.
    pub later: HashSet<Identity>,
    /// Of what is to be taken away.
    pub reviewed: HashMap<Identity, MayDelete>,
    pub removed: HashMap<Identity, Removed>,
}

/// What is kept of an outcome until the end of a pass: not the object, which may be large.
pub struct Kept {
    pub result: Result<(), Failed>,
    pub availability: Availability,
    pub is_owned: bool,
    pub uid: Option<String>,
    pub version: Option<String>,
    pub said: Option<Said>,
}

// === impl Begun ===

impl Begun {
    /// Where to begin, in this generation of the work.
    pub fn take(memory: &mut Memory, generation: i64) -> Self {
        let begun = memory.begun.take().filter(|begun| begun.generation == generation);
        begun.map_or_else(|| Self { generation, ..Self::default() }, |begun| Self { is_more: true, ..begun })
    }

    /// Keeps it, if it was for its turn that the pass did not come to its end. If it was for
    /// anything else, what turns before looked at is owed to nobody and told nowhere: the next pass
    /// looks at all.
    pub fn keep<T>(self, memory: &mut Memory, ended: &Result<T, Failure>) {
        match ended {
            Err(failure) if failure.is_for_turn() => memory.begun = Some(self),
            Err(_) if self.is_more => memory.settled = None,
            _ => {}
        }
    }

    /// Whether a manifest was looked at, by its outcome.
    pub fn is_looked_at(outcomes: &[Option<Kept>], manifest: &Manifest) -> bool {
        outcomes.get(manifest.ordinal).is_some_and(Option::is_some)
    }

    /// What was looked at in a turn before is not looked at again in this pass, but after it: a
    /// work whose objects change all the time would have no end else.
    pub fn put_off(&mut self, manifests: &[Manifest], owed: &mut HashSet<Identity>) {
        let is_looked_at = |manifest: &&Manifest| Self::is_looked_at(&self.outcomes, manifest);
        let looked_at = manifests.iter().filter(is_looked_at).map(Manifest::identity);
        self.later.extend(looked_at.filter(|identity| owed.remove(identity)));
    }
}

#[cfg(test)]
mod tests {
    use delivery::manifests::{self, Lookup, Resource};

    use super::*;

    #[test]
    fn it_is_of_one_generation_and_only_where_a_turn_was_over() {
        let mut memory = Memory::default();
        let identity = Identity { name: "a".into(), ..Identity::default() };
        let begin = |memory: &mut Memory, ended: Result<(), Failure>| {
            let mut begun = Begun::take(memory, 1);
            begun.removed.insert(identity.clone(), Removed::Gone);
            begun.keep(memory, &ended);
        };
        begin(&mut memory, Err(Failure::TurnOver));
        assert!(Begun::take(&mut memory, 1).removed.contains_key(&identity));
        assert!(Begun::take(&mut memory, 1).removed.is_empty(), "it is gone on with once");
        begin(&mut memory, Err(Failure::Slow));
        assert!(Begun::take(&mut memory, 2).removed.is_empty());
        begin(&mut memory, Ok(()));
        assert!(memory.begun.is_none());
        begin(&mut memory, Err(Failure::Gone));
        assert!(memory.begun.is_none());
    }

    #[test]
    fn what_was_looked_at_and_not_told_is_looked_at_again() {
        let settled = |before: Option<Failure>, ended: Result<(), Failure>| {
            let mut memory = Memory::default();
            memory.settled = Some(1);
            if let Some(before) = before {
                Begun::take(&mut memory, 1).keep(&mut memory, &Err::<(), _>(before));
            }
            Begun::take(&mut memory, 1).keep(&mut memory, &ended);
            memory.settled
        };
        assert_eq!(settled(Some(Failure::TurnOver), Err(Failure::Gone)), None);
        assert_eq!(settled(None, Err(Failure::Gone)), Some(1), "all that changed is owed still");
        for ended in [Ok(()), Err(Failure::Slow)] {
            assert_eq!(settled(Some(Failure::Slow), ended), Some(1));
        }
    }

    #[test]
    fn what_changed_since_it_was_looked_at_is_for_the_next_pass() {
        let manifest = |name: &str| {
            let metadata = serde_json::json!({"name": name, "namespace": "n"});
            serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        };
        let resource = Resource { name: "configmaps".into(), is_namespaced: true };
        let all = manifests::read(&[manifest("a"), manifest("b")], |_, _, _| Lookup::Found(resource.clone()));
        let looked_at = Kept {
            result: Ok(()),
            availability: Availability::Available,
            is_owned: true,
            uid: None,
            version: None,
            said: None,
        };
        let mut begun = Begun { outcomes: vec![Some(looked_at), None], ..Begun::default() };
        let mut owed: HashSet<Identity> = all.iter().map(Manifest::identity).collect();
        begun.put_off(&all, &mut owed);
        assert_eq!((owed, begun.later), ([all[1].identity()].into(), [all[0].identity()].into()));
    }
}
