//! The state of a work's objects between two passes. There are a hundred thousand objects, and for
//! most there is little to keep.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use delivery::identity::Identity;
use delivery::strategy::AnswerHashes;
use tokio::time::Instant;

use super::object::Remembered;

/// The objects of one work.
#[derive(Default)]
pub struct Objects {
    /// Objects for which only the last seen state is kept.
    calm: HashMap<Arc<Identity>, AnswerHashes>,
    /// The others: objects that fail, are changed back, or are due at some time.
    troubled: HashMap<Arc<Identity>, Remembered>,
    /// There is no room for any.
    is_closed: bool,
}

// === impl Objects ===

impl Objects {
    /// The state of an object; empty for an unknown one.
    pub fn get(&self, identity: &Identity) -> Remembered {
        let calm = || self.calm.get(identity).map(|seen| Remembered { seen: Some(*seen), ..Remembered::default() });
        self.troubled.get(identity).copied().or_else(calm).unwrap_or_default()
    }

    /// Sets whether there is room. Without room, all state is dropped.
    pub fn keeps(&mut self, has_room: bool) {
        if !has_room {
            *self = Self::default();
        }
        self.is_closed = !has_room;
    }

    pub fn insert(&mut self, identity: Arc<Identity>, remembered: Remembered) {
        if self.is_closed {
            return;
        }
        let calm = Remembered { seen: remembered.seen, ..Remembered::default() };
        if remembered != calm {
            self.calm.remove(&identity);
            self.troubled.insert(identity, remembered);
            return;
        }
        self.troubled.remove(&identity);
        match remembered.seen {
            Some(seen) => drop(self.calm.insert(identity, seen)),
            None => drop(self.calm.remove(&identity)),
        }
    }

    /// An object may succeed now: it is tried as if it had not failed.
    pub fn begin_again(&mut self, identity: &Identity) {
        if let Some(one) = self.troubled.get_mut(identity) {
            one.failures = 0;
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.calm.len() + self.troubled.len()
    }

    /// Drops the state of all other objects.
    pub fn retain(&mut self, all: &HashSet<Identity>) {
        self.calm.retain(|identity, _| all.contains(&**identity));
        self.troubled.retain(|identity, _| all.contains(&**identity));
    }

    /// The objects that are due.
    pub fn due(&self, now: Instant) -> impl Iterator<Item = &Identity> {
        let is_due = move |one: &Remembered| one.again.is_some_and(|again| again <= now);
        self.troubled.iter().filter(move |(_, one)| is_due(one)).map(|(identity, _)| &**identity)
    }

    /// Number of objects that another client keeps changing back.
    pub fn contested(&self, now: Instant) -> usize {
        self.troubled.values().filter(|one| one.contest.is_contested(now)).count()
    }

    /// When the next object is due, or the next contest ends, which is reported.
    pub fn next(&self, now: Instant) -> Option<Instant> {
        let ends = self.troubled.values().filter_map(|one| one.contest.ends(now));
        self.troubled.values().filter_map(|one| one.again).chain(ends).min()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_object_is_what_was_kept_of_it_last() {
        let (mut objects, now) = (Objects::default(), Instant::now());
        let identity = |name: &str| Arc::new(Identity { name: name.into(), ..Identity::default() });
        let calm = Remembered { seen: Some(AnswerHashes::of(&json!(1), &json!(2))), ..Remembered::default() };
        let failing = Remembered { failures: 3, again: Some(now), ..calm };
        let is = |objects: &Objects, name: &str| objects.get(&identity(name));
        objects.insert(identity("a"), calm);
        objects.insert(identity("b"), failing);
        assert_eq!((is(&objects, "a"), is(&objects, "b"), is(&objects, "c")), (calm, failing, Remembered::default()));
        assert_eq!(objects.due(now).map(|one| &*one.name).collect::<Vec<_>>(), ["b"]);
        assert_eq!(objects.next(now), Some(now));
        objects.insert(identity("a"), failing);
        objects.insert(identity("b"), calm);
        assert_eq!((is(&objects, "a"), is(&objects, "b")), (failing, calm), "each is in one place");
        objects.insert(identity("a"), Remembered::default());
        assert_eq!((is(&objects, "a"), objects.next(now)), (Remembered::default(), None));
        objects.retain(&HashSet::new());
        assert_eq!(is(&objects, "b"), Remembered::default());
        for has_room in [false, true] {
            objects.keeps(has_room);
            objects.insert(identity("b"), failing);
            assert_eq!(is(&objects, "b") == failing, has_room);
        }
        objects.retain(&HashSet::new());
        let mut contested = calm;
        for _ in 0..5 {
            contested.contest.repaired(now);
        }
        objects.insert(identity("a"), contested);
        assert_eq!((objects.contested(now), objects.due(now).count()), (1, 0));
        assert!(objects.next(now).is_some_and(|next| next > now + Duration::from_mins(1)));
    }
}
