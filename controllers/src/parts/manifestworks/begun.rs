//! What a pass had done when its turn was over. The next one goes on there: what one turn is too
//! short for would never come to an end otherwise.

use std::collections::{HashMap, HashSet};

use delivery::identity::{Identity, Tracked};
use delivery::manifests::Manifest;
use delivery::work::{Availability, Failed};

use super::discovery::Found;
use super::telling::Said;

#[derive(Default)]
pub struct Begun {
    generation: i64,
    is_more: bool,
    /// Which kinds the member has, of those that are wanted.
    pub kinds: Found,
    /// What became of manifests, by ordinal; none: it was not looked at.
    pub outcomes: Vec<Option<Kept>>,
    /// What was looked for though it is not listed, and what is there and ours of it.
    pub unlisted: HashMap<Identity, Option<Tracked>>,
    /// What has changed since it was looked at: for the pass after this one.
    pub later: HashSet<Identity>,
    /// Of what is to be taken away.
    pub reviewed: HashMap<Identity, MayDelete>,
    pub removed: HashMap<Identity, Removed>,
}

/// What became of an object that is no longer wanted.
#[derive(Debug, Clone)]
pub enum Removed {
    /// It is tracked no longer.
    Gone,
    /// It stays tracked until it is gone; its version.
    Waits(Option<String>),
    /// The same: the member refuses that it goes, and why.
    Refused(String),
}

/// Whether the executor may delete an object; or what is told.
pub type MayDelete = Result<(), String>;

/// What is kept of an outcome until the end of a pass: not the object, which may be large.
pub struct Kept {
    pub result: Result<(), Failed>,
    pub availability: Availability,
    pub is_owned: bool,
    pub uid: Option<String>,
    pub version: Option<String>,
    pub said: Option<Said>,
    /// What is told of it, though it is applied.
    pub note: Option<String>,
}

// === impl Begun ===

impl Begun {
    /// What follows what a turn had `before`, in this generation of the work.
    pub fn after(before: Option<Self>, generation: i64) -> Self {
        let begun = before.filter(|begun| begun.generation == generation);
        begun.map_or_else(|| Self { generation, ..Self::default() }, |begun| Self { is_more: true, ..begun })
    }

    /// Whether a turn before this one had begun it.
    pub fn is_more(&self) -> bool {
        self.is_more
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
            note: None,
        };
        let mut begun = Begun { outcomes: vec![Some(looked_at), None], ..Begun::default() };
        let mut owed: HashSet<Identity> = all.iter().map(Manifest::identity).collect();
        begun.put_off(&all, &mut owed);
        assert_eq!((owed, begun.later), ([all[1].identity()].into(), [all[0].identity()].into()));
    }
}
