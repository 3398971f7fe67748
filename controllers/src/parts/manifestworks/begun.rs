//! The progress of a pass when its slot ended. The next pass continues from there. Otherwise a pass
//! that needs more than one slot would never end.

mod answers;

use std::collections::HashSet;

use delivery::identity::{Identity, Tracked};
use delivery::manifests::Manifest;
use delivery::work::{Availability, Failed};

pub use self::answers::Answers;
use super::allowance::{Allowance, Charge};
use super::discovery::KindLookups;
use super::telling::Said;

/// Memory of an identity, or of a kind, in bytes, roughly.
const IDENTITY: usize = 256;

#[derive(Default)]
pub struct Begun {
    generation: i64,
    is_more: bool,
    /// Which of the wanted kinds the member has.
    pub kinds: KindLookups,
    /// Outcomes of manifests, by ordinal; none if a manifest was not processed.
    pub outcomes: Vec<Option<Kept>>,
    /// The objects of a complete work that the outcomes belong to, as a number.
    read: Option<u64>,
    /// Results of the search for objects that are not listed: those that exist and are ours.
    /// Usually there are none.
    pub unlisted: Answers<Tracked>,
    /// Objects that changed after they were processed: for the pass after this one.
    pub later: HashSet<Identity>,
    /// For objects to remove: why they may not be removed. Usually they may be.
    pub reviewed: Answers<String>,
    /// Results of removals: the objects that stay. Usually they are gone.
    pub removed: Answers<Removed>,
    /// The memory it takes between two slots.
    charge: Option<Charge>,
}

/// The result for an object that is no longer wanted.
#[derive(Debug, Clone)]
pub enum Removed {
    /// It is no longer tracked.
    Gone,
    /// It stays tracked until it is gone; its version.
    Waits(Option<String>),
    /// The same, but the member refuses to delete it; with the reason.
    Refused(String),
}

/// Whether the executor may delete an object; otherwise the reason, for the status.
pub type MayDelete = Result<(), String>;

/// The part of an outcome that is kept until the end of a pass: without the object, which may be
/// large.
pub struct Kept {
    pub result: Result<(), Failed>,
    pub availability: Availability,
    pub is_owned: bool,
    pub uid: Option<String>,
    pub version: Option<String>,
    pub said: Option<Said>,
    /// A note in the status of an applied object.
    pub note: Option<String>,
}

// === impl Begun ===

impl Begun {
    /// Continues from the state `before` of an earlier slot, if it is of this generation of the
    /// work.
    pub fn after(before: Option<Self>, generation: i64) -> Self {
        let begun = before.filter(|begun| begun.generation == generation);
        let begun =
            begun.map_or_else(|| Self { generation, ..Self::default() }, |begun| Self { is_more: true, ..begun });
        // While it is processed, it counts among the slot's memory.
        Self { charge: None, ..begun }
    }

    /// Called with the objects that a status lists and this pass reads. If another client has
    /// changed that list since the earlier slot, the outcomes belong to other objects, and are
    /// dropped. Returns whether that is so.
    pub fn reads(&mut self, objects: u64) -> bool {
        let is_other = self.read.replace(objects).is_some_and(|before| before != objects);
        if is_other {
            self.outcomes.clear();
        }
        is_other
    }

    /// Whether an earlier slot had begun it.
    pub fn is_more(&self) -> bool {
        self.is_more
    }

    /// The state to keep until the next slot, as far as there is room for it. Returns whether all
    /// of it is kept; otherwise the next pass processes the manifests again.
    pub fn kept(mut self, allowance: &Allowance) -> (Option<Self>, bool) {
        self.charge = allowance.take(self.weighs());
        if self.charge.is_some() {
            return (Some(self), true);
        }
        let Self { generation, mut unlisted, mut reviewed, mut removed, .. } = self;
        unlisted.forget_others();
        reviewed.forget_others();
        removed.forget_others();
        let mut numbers = Self { generation, unlisted, reviewed, removed, ..Self::default() };
        numbers.charge = allowance.take(numbers.weighs());
        (numbers.charge.is_some().then_some(numbers), false)
    }

    /// Memory in bytes, roughly.
    fn weighs(&self) -> usize {
        let text = |removed: &Removed| match removed {
            Removed::Gone | Removed::Waits(None) => 0,
            Removed::Waits(Some(text)) | Removed::Refused(text) => text.len(),
        };
        let outcomes = self.outcomes.iter().flatten().map(Kept::weighs).sum::<usize>();
        let answers = self.unlisted.weighs(texts) + self.reviewed.weighs(String::len);
        let places = self.outcomes.len() * size_of::<Option<Kept>>() + IDENTITY * (self.kinds.len() + self.later.len());
        size_of::<Self>() + places + outcomes + answers + self.removed.weighs(text)
    }

    /// Whether a manifest was processed, by its outcome.
    pub fn is_looked_at(outcomes: &[Option<Kept>], manifest: &Manifest) -> bool {
        outcomes.get(manifest.ordinal).is_some_and(Option::is_some)
    }

    /// An object that was processed in an earlier slot is not processed again in this pass, but
    /// after it. Otherwise a work whose objects change continuously would never end its pass.
    pub fn put_off(&mut self, manifests: &[Manifest], owed: &mut HashSet<Identity>) {
        let is_looked_at = |manifest: &&Manifest| Self::is_looked_at(&self.outcomes, manifest);
        let looked_at = manifests.iter().filter(is_looked_at).map(Manifest::identity);
        self.later.extend(looked_at.filter(|identity| owed.remove(identity)));
    }
}

// === impl Kept ===

impl Kept {
    fn weighs(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let failed = match &self.result {
            Ok(()) => 0,
            Err(Failed::IgnoreFields(why) | Failed::Other(why)) => why.len(),
        };
        let unknown = if let Availability::Unknown(why) = &self.availability { why.len() } else { 0 };
        let said = self.said.as_ref().map_or(0, Said::weighs);
        text(&self.uid) + text(&self.version) + text(&self.note) + failed + unknown + said
    }
}

fn texts(tracked: &Tracked) -> usize {
    let Tracked { identity: Identity { group, resource, name, namespace }, version, uid } = tracked;
    [group, resource, name, namespace, version, uid].into_iter().map(String::len).sum()
}

#[cfg(test)]
mod tests {
    use delivery::manifests::{self, Lookup, Resource};

    use super::*;
    use crate::parts::manifestworks::removal::MOST_AT_ONCE;
    use crate::parts::manifestworks::shelf::MemoryLimits;
    use crate::parts::manifestworks::target::KEPT;

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

    /// Tests use one `PART`th of all limits, to take one `PART`th of the time.
    const PART: usize = 20;

    /// The state of a pass over a [`PART`]th of the most objects, each of which the member refuses
    /// to delete.
    fn hostile() -> Begun {
        let mut begun = Begun::default();
        for number in 0..MOST_AT_ONCE / PART {
            let identity =
                |kind: &str| Identity { resource: kind.into(), name: format!("{number}"), ..Identity::default() };
            begun.removed.insert(identity("stays"), Some(Removed::Refused("x".repeat(200))));
            begun.removed.insert(identity("gone"), None);
            begun.reviewed.insert(identity("gone"), None);
        }
        begun
    }

    #[test]
    fn what_works_of_a_member_have_begun_takes_no_more_than_there_is_room_for() {
        let room = MemoryLimits { in_all: KEPT.in_all / PART, of_one: KEPT.of_one / PART };
        let all = Allowance::new(room);
        let clusters: Vec<Allowance> = (0..10).map(|_| all.of_one()).collect();
        let begun = clusters.iter().flat_map(|cluster| (0..14).map(|_| hostile().kept(cluster).0));
        let begun: Vec<Begun> = begun.flatten().collect();
        let sum = begun.iter().map(Begun::weighs).sum::<usize>();
        assert!((room.in_all / 2..=room.in_all).contains(&sum), "{sum}");
        assert!(clusters[0].take(room.of_one).is_none() && all.of_one().take(room.of_one).is_none());
    }

    #[test]
    fn without_room_for_all_what_is_gone_is_kept_and_what_was_looked_at_is_looked_at_again() {
        let identity = |kind: &str| Identity { resource: kind.into(), name: "7".into(), ..Identity::default() };
        let whole = hostile().weighs();
        let room = |bytes: usize| Allowance::new(MemoryLimits { in_all: bytes, of_one: bytes });
        let (begun, is_whole) = hostile().kept(&room(whole));
        assert!(is_whole && begun.unwrap().removed.has(&identity("stays")));
        let (begun, is_whole) = hostile().kept(&room(whole / 4));
        let begun = begun.unwrap();
        assert!(!is_whole && begun.removed.is_usual(&identity("gone")) && begun.reviewed.is_usual(&identity("gone")));
        assert!(!begun.removed.has(&identity("stays")), "it is asked for again");
        assert!(matches!(hostile().kept(&room(1_000)), (None, false)));
        // While it is processed, its slot counts it.
        let allowance = room(whole);
        let begun = Begun::after(hostile().kept(&allowance).0, 0);
        assert!(begun.is_more() && allowance.take(whole).is_some());
    }
}
