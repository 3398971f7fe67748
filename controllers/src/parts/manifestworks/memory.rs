//! What is known of works between two passes. Nothing of it is needed to begin: the hub and the
//! members have it all.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use delivery::identity::Identity;
use delivery::work::{ManifestWorkStatus, is_complete};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use net::backoff::Backoff;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::applied::Writes;
use super::begun::Begun;
use super::budget::{self, Budget, Charge};
use super::clusters::Mode;
use super::edits::{Edit, Edits};
use super::failure::Failure;
use super::objects::Objects;
use super::pace::{Heat, Pace};
use super::sights::{Scope, Sights};
use super::work::Work;
use crate::metrics::{Delivery, Unwatched};
use crate::parts::watched::is_older;
use crate::wakes::Key;

/// Between looks at what is being deleted.
const GOING: Backoff = Backoff::doubling(Duration::from_secs(2), Duration::from_mins(1));

/// Of one work. There are ten thousand, of which few are worked on: what is of those alone is
/// boxed.
#[derive(Default)]
pub struct Memory {
    uid: String,
    /// The generation at which all of its objects were looked at; none: they are to be.
    pub settled: Option<i64>,
    /// Objects that are to be looked at.
    pub owed: HashSet<Identity>,
    pub objects: Objects,
    /// Where a pass goes on whose slot was over.
    begun: Option<Box<Begun>>,
    /// The word of the cluster by which it was taken over from an agent, if one kept it.
    pub adopted: Option<Mode>,
    /// What is written of it.
    pub writes: Writes,
    /// It is looked at again then.
    pub applied_again: Option<Instant>,
    pub scopes: HashSet<Scope>,
    /// What is remembered of its objects takes that much.
    room: Option<Charge>,
    /// There is no room for it: its objects are looked at from time to time.
    unwatched: Option<Unwatched>,
    /// Some of its objects cannot be followed: all are looked at then.
    pub resync: Option<Instant>,
    /// What is no longer wanted, and not gone yet, is looked at then.
    pub removal: Option<Instant>,
    pub pace: Pace,
    pub heat: Heat,
    /// What is being deleted, and how often in a row it was looked at in vain.
    going: (usize, u32),
    /// The failure that was logged last.
    pub said: String,
    /// Since when its cluster is seen to be gone, or to go, and not to answer.
    pub left: Option<Instant>,
    /// Passes in a row that did not end well.
    pub failures: u32,
    /// What is to be told, where that waits for its time.
    pub status: Option<ManifestWorkStatus>,
    /// What that takes.
    waiting: Option<Charge>,
    /// Bytes of the smallest status that was too large for the hub, and at which generation.
    pub too_large: Option<(i64, usize)>,
    is_complete: bool,
    pub edits: Edits,
    written: Option<Box<Written>>,
}

/// The work as this process wrote it last: what the watch says may be older.
struct Written {
    version: String,
    finalizers: Vec<String>,
    status: ManifestWorkStatus,
}

#[derive(Default)]
pub struct Memories(Mutex<HashMap<Key, Arc<tokio::sync::Mutex<Memory>>>>);

// === impl Memory ===

impl Memory {
    /// Puts into `work` what is newer here. Another work of that name has nothing here.
    pub fn recall(&mut self, work: &mut Work) {
        if self.uid != work.uid {
            *self = Self { uid: work.uid.clone(), ..Self::default() };
        }
        match &self.written {
            Some(written) if is_older(Some(&work.version), &written.version) => {
                work.version.clone_from(&written.version);
                work.finalizers.clone_from(&written.finalizers);
                work.status.clone_from(&written.status);
            }
            _ => self.written = None,
        }
        self.edits.know(&work.version);
    }

    /// Whether the work is complete, by what it was told or is about to be.
    ///
    /// # Errors
    ///
    /// Somebody else wrote that of a complete one, again: nothing is done for so long.
    pub fn judge(&mut self, work: &Work, now: Instant) -> Result<bool, Duration> {
        let is_owed = self.status.is_some() || self.settled != Some(work.generation);
        match self.edits.judge(&work.status, is_owed, now) {
            Edit::Now => self.settled = None,
            Edit::In(wait) if self.is_complete => return Err(wait),
            Edit::In(_) | Edit::None => {}
        }
        let told = self.status.as_ref().unwrap_or(&work.status);
        let is_complete = is_complete(&told.conditions);
        self.becomes(is_complete);
        Ok(is_complete)
    }

    /// The work is complete, or is not. What was begun of the other kind of pass is of no use to
    /// this one, and what is complete no more is to be applied.
    pub fn becomes(&mut self, is_complete: bool) {
        if std::mem::replace(&mut self.is_complete, is_complete) == is_complete {
            return;
        }
        self.begun = None;
        if !is_complete {
            self.settled = None;
        }
    }

    /// For how long nothing is done with the work that has this metadata, whatever is seen of its
    /// objects: what is owed is gathered then.
    pub fn rests(&self, metadata: &ObjectMeta, now: Instant) -> Option<Duration> {
        let generation = metadata.generation.unwrap_or_default();
        let is_same = metadata.uid.as_deref() == Some(self.uid.as_str()) && metadata.deletion_timestamp.is_none();
        let is_at_rest = is_same && self.settled == Some(generation) && self.status.is_none();
        self.heat.wait(now, generation).filter(|_| is_at_rest)
    }

    /// The watch tells that version: what this process wrote before is known by it. Returns whether
    /// somebody else wrote it since this process looked at the work last.
    pub fn saw(&mut self, version: &str) -> bool {
        self.written.take_if(|written| !is_older(Some(version), &written.version));
        self.edits.are_behind(version)
    }

    /// It was written just now, and is so.
    pub fn wrote(&mut self, work: &Work) {
        self.edits.know(&work.version);
        self.written = Some(Box::new(Written {
            version: work.version.clone(),
            finalizers: work.finalizers.clone(),
            status: work.status.clone(),
        }));
    }

    /// Where to begin, in this generation of the work.
    pub fn begin(&mut self, generation: i64) -> Begun {
        Begun::after(self.begun.take().map(|begun| *begun), generation)
    }

    /// Whether a pass goes on where a slot was over.
    pub fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// Keeps what was begun, if the pass did not come to its end because its slot was over. After
    /// any other failure, and where there is no room to keep all of it, the next pass looks at all:
    /// what earlier slots looked at is owed no more, and is not on the hub yet.
    pub fn keep<T>(&mut self, begun: Begun, ended: &Result<T, Failure>, budget: &Budget) {
        match ended {
            Err(failure) if failure.is_for_slot() => {
                let (begun, is_whole) = begun.kept(budget);
                self.begun = begun.map(Box::new);
                if !is_whole {
                    self.settled = None;
                }
            }
            Err(_) if begun.is_more() => self.settled = None,
            _ => {}
        }
    }

    /// A pass failed. What it owes would be kept until the member answers: where the next pass
    /// looks at all objects anyway, it is forgotten.
    pub fn owes_all(&mut self, generation: i64) {
        if self.unwatched.is_some() {
            self.settled = None;
        }
        if self.settled != Some(generation) {
            self.owed = HashSet::new();
        }
    }

    /// Makes room for `bytes` of what is remembered of its objects. Without room, nothing of it is.
    /// Returns whether there is.
    pub fn make_room(&mut self, bytes: usize, budget: &Budget, metrics: &Delivery) -> bool {
        let has_room = if self.room.is_some() {
            self.grow(bytes)
        } else {
            self.room = budget.take(bytes);
            self.room.is_some()
        };
        if has_room {
            self.unwatched = None;
        } else {
            (self.room, self.scopes) = (None, HashSet::new());
            self.unwatched.get_or_insert_with(|| metrics.unwatched());
        }
        self.objects.keeps(has_room);
        has_room
    }

    /// The same, where it has room already: without more, it keeps that.
    pub fn grow(&mut self, bytes: usize) -> bool {
        self.room.as_mut().is_some_and(|room| room.set(bytes))
    }

    /// Whether changes of all its objects are seen.
    pub fn is_seen(&self, sights: &Sights) -> bool {
        self.unwatched.is_none() && sights.sees(&self.scopes)
    }

    pub fn is_unwatched(&self) -> bool {
        self.unwatched.is_some()
    }

    /// A status waits to be written. Without room for it, it is returned, and the next pass looks
    /// at all objects.
    pub fn put_back(&mut self, status: ManifestWorkStatus, budget: &Budget) -> Option<ManifestWorkStatus> {
        self.waiting = budget.take(budget::weighs(&status));
        if self.waiting.is_none() {
            self.settled = None;
            return Some(status);
        }
        self.status = Some(status);
        None
    }

    /// What is to be written now.
    pub fn take_status(&mut self) -> Option<ManifestWorkStatus> {
        self.waiting = None;
        self.status.take()
    }

    /// So many are being deleted. Returns until when they are looked at again: their end is seen,
    /// mostly.
    pub fn goes(&mut self, left: usize) -> Duration {
        let times = if self.going.0 == left { self.going.1 } else { 0 };
        self.going = (left, times.saturating_add(1));
        GOING.wait(times)
    }

    /// Nothing is being deleted.
    pub fn clear_going(&mut self) {
        self.going = (0, 0);
    }

    /// The objects whose time has come.
    pub fn due(&self, now: Instant) -> impl Iterator<Item = &Identity> {
        self.objects.due(now)
    }

    /// Of so many objects somebody changes what is repaired.
    pub fn contested(&self) -> usize {
        self.objects.contested(Instant::now())
    }

    /// When the next one comes.
    pub fn next(&self) -> Option<Instant> {
        let objects = self.objects.next(Instant::now()).into_iter();
        let timers = [self.resync, self.removal, self.applied_again, self.edits.again()];
        objects.chain(timers.into_iter().flatten()).min()
    }
}

// === impl Memories ===

impl Memories {
    pub fn of(&self, key: &Key) -> Arc<tokio::sync::Mutex<Memory>> {
        Arc::clone(self.0.lock().entry(key.clone()).or_default())
    }

    pub fn forget(&self, key: &Key) {
        self.0.lock().remove(key);
    }

    /// The watch tells a work in that version: as [`Memory::saw`]. Whoever works on it now finds
    /// that out at the end.
    pub fn saw(&self, key: &Key, version: &str) -> bool {
        let memory = self.0.lock().get(key).map(Arc::clone);
        memory.is_some_and(|memory| memory.try_lock().is_ok_and(|mut memory| memory.saw(version)))
    }

    /// Those that are not there any more.
    pub fn missing(&self, is_there: impl Fn(&Key) -> bool) -> Vec<Key> {
        self.0.lock().keys().filter(|key| !is_there(key)).cloned().collect()
    }

    /// Those of a cluster.
    pub fn of_cluster(&self, cluster: &str) -> Vec<Key> {
        self.0.lock().keys().filter(|(namespace, _)| namespace == cluster).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use kube::api::DynamicObject;
    use serde_json::json;

    use super::*;
    use crate::parts::manifestworks::shelf::Room;

    fn roomy() -> Budget {
        Budget::new(Room { in_all: usize::MAX, of_one: usize::MAX })
    }

    #[test]
    fn it_is_of_one_generation_and_only_where_a_turn_was_over() {
        let mut memory = Memory::default();
        let identity = Identity { name: "a".into(), ..Identity::default() };
        let begin = |memory: &mut Memory, ended: Result<(), Failure>| {
            let mut begun = memory.begin(1);
            begun.removed.insert(identity.clone(), None);
            memory.keep(begun, &ended, &roomy());
        };
        begin(&mut memory, Err(Failure::SlotOver));
        assert!(memory.begin(1).removed.is_usual(&identity));
        assert!(memory.begin(1).removed.len() == 0, "it is gone on with once");
        begin(&mut memory, Err(Failure::Slow));
        assert!(memory.begin(2).removed.len() == 0);
        begin(&mut memory, Ok(()));
        assert!(memory.begun.is_none());
        begin(&mut memory, Err(Failure::Gone));
        assert!(memory.begun.is_none());
    }

    #[test]
    fn what_was_looked_at_and_not_told_is_looked_at_again() {
        let settled = |before: Option<Failure>, ended: Result<(), Failure>| {
            let mut memory = Memory { settled: Some(1), ..Memory::default() };
            if let Some(before) = before {
                let begun = memory.begin(1);
                memory.keep(begun, &Err::<(), _>(before), &roomy());
            }
            let begun = memory.begin(1);
            memory.keep(begun, &ended, &roomy());
            memory.settled
        };
        assert_eq!(settled(Some(Failure::SlotOver), Err(Failure::Gone)), None);
        assert_eq!(settled(None, Err(Failure::Gone)), Some(1), "all that changed is owed still");
        for ended in [Ok(()), Err(Failure::Slow)] {
            assert_eq!(settled(Some(Failure::Slow), ended), Some(1));
        }
    }

    #[test]
    fn what_a_failed_pass_owes_is_kept_only_where_the_next_would_not_look_at_it() {
        let owed = |settled: Option<i64>, has_room: bool| {
            let budget = Budget::new(Room { in_all: 1, of_one: 1 });
            let mut memory = Memory { settled, owed: HashSet::from([Identity::default()]), ..Memory::default() };
            memory.make_room(if has_room { 1 } else { 2 }, &budget, &Delivery::default());
            memory.owes_all(1);
            memory.owed.len()
        };
        assert_eq!([owed(Some(1), true), owed(None, true), owed(Some(2), true), owed(Some(1), false)], [1, 0, 0, 0]);
    }

    #[test]
    fn what_was_written_is_kept_until_the_watch_tells_it() {
        let object: DynamicObject = serde_json::from_value(json!({"apiVersion": "v1", "kind": "x",
            "metadata": {"name": "w", "namespace": "c", "uid": "u", "resourceVersion": "9"}}))
        .unwrap();
        let (memories, mut work) = (Memories::default(), Work::read(&object));
        let memory = memories.of(&work.key);
        memory.try_lock().unwrap().wrote(&work);
        work.version = "8".to_owned();
        let is_kept = || memory.try_lock().unwrap().written.is_some();
        memories.saw(&work.key, "8");
        assert!(is_kept(), "the watch is behind");
        let held = memory.try_lock().unwrap();
        memories.saw(&work.key, "9");
        drop(held);
        assert!(is_kept(), "somebody works on it");
        memories.saw(&work.key, "9");
        assert!(!is_kept());
    }
}
