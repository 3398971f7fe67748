//! The state of works between two passes. None of it is needed to begin: the hub and the members
//! have all of it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use delivery::identity::Identity;
use delivery::work::{ManifestWorkStatus, is_complete};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use net::backoff::Backoff;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::allowance::{self, Allowance, Charge};
use super::applied::Writes;
use super::begun::Begun;
use super::clusters::Mode;
use super::contest::TWINS;
use super::edits::{Edit, Edits};
use super::failure::Failure;
use super::objects::Objects;
use super::pace::{Heat, StatusWrites};
use super::sights::{Scope, Sights};
use super::work::Work;
use crate::metrics::{Delivery, Unwatched};
use crate::parts::watched::is_older;
use crate::wakes::Key;

/// Interval of checks of objects that are being deleted.
const GOING: Backoff = Backoff::doubling(Duration::from_secs(2), Duration::from_mins(1));

/// The state of one work. There are ten thousand, of which few are being processed: fields that
/// only those need are boxed.
#[derive(Default)]
pub struct Memory {
    uid: String,
    /// The generation at which all of its objects were processed; none if they must be processed.
    pub settled: Option<i64>,
    /// Objects that must be processed.
    pub owed: HashSet<Identity>,
    pub objects: Objects,
    /// Where the next pass continues after the slot ended.
    begun: Option<Box<Begun>>,
    /// The cluster's mode with which it was adopted from an agent, if one kept it.
    pub adopted: Option<Mode>,
    /// Other `AppliedManifestWorks` that deliver it, and were reported.
    twins_told: Vec<String>,
    /// Writes of its `AppliedManifestWork`.
    pub writes: Writes,
    /// When its `AppliedManifestWork` is processed again.
    pub applied_again: Option<Instant>,
    pub scopes: HashSet<Scope>,
    /// Memory of the state of its objects.
    room: Option<Charge>,
    /// There is no room for that state: its objects are processed periodically.
    unwatched: Option<Unwatched>,
    /// When all objects are processed, because some cannot be followed.
    pub resync: Option<Instant>,
    /// When objects that are no longer wanted, but not gone yet, are checked.
    pub removal: Option<Instant>,
    pub status_writes: StatusWrites,
    pub heat: Heat,
    /// Number of objects being deleted, and of checks in a row without progress.
    going: (usize, u32),
    /// The last logged failure.
    pub said: String,
    /// Since when its cluster has been gone, or leaving, and without an answer.
    pub left: Option<Instant>,
    /// Failed passes in a row.
    pub failures: u32,
    /// The status to write, while it waits for its time.
    pub status: Option<ManifestWorkStatus>,
    /// Memory of that status.
    waiting: Option<Charge>,
    /// Bytes of the smallest status that was too large for the hub, and the work's generation.
    pub too_large: Option<(i64, usize)>,
    is_complete: bool,
    pub edits: Edits,
    written: Option<Box<Written>>,
}

/// The work as this process wrote it last: the watch may have an older version.
struct Written {
    version: String,
    finalizers: Vec<String>,
    status: ManifestWorkStatus,
}

#[derive(Default)]
pub struct Memories(Mutex<HashMap<Key, Arc<tokio::sync::Mutex<Memory>>>>);

// === impl Memory ===

impl Memory {
    /// Copies newer fields into `work`. A different work of the same name has no state here.
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

    /// Records another `AppliedManifestWork` that delivers it. True if it is to be reported:
    /// a member may name any number of them, each time others.
    pub fn met(&mut self, twin: &str) -> bool {
        let is_new = self.twins_told.len() < TWINS && self.twins_told.iter().all(|told| told != twin);
        if is_new {
            self.twins_told.push(twin.to_owned());
        }
        is_new
    }

    /// Whether the work is complete, by its reported status, or the one about to be written.
    ///
    /// # Errors
    ///
    /// Fails if another client wrote the status of a complete work, again: returns the time for
    /// which nothing is done.
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

    /// Sets whether the work is complete. On a change, the state of an unfinished pass of the other
    /// kind is useless, and a work that is no longer complete must be applied.
    pub fn becomes(&mut self, is_complete: bool) {
        if std::mem::replace(&mut self.is_complete, is_complete) == is_complete {
            return;
        }
        self.begun = None;
        if !is_complete {
            self.settled = None;
        }
    }

    /// How long the work with this metadata is not processed, regardless of changes to its objects:
    /// these are gathered meanwhile.
    pub fn rests(&self, metadata: &ObjectMeta, now: Instant) -> Option<Duration> {
        let generation = metadata.generation.unwrap_or_default();
        let is_same = metadata.uid.as_deref() == Some(self.uid.as_str()) && metadata.deletion_timestamp.is_none();
        let is_at_rest = is_same && self.settled == Some(generation) && self.status.is_none();
        self.heat.wait(now, generation).filter(|_| is_at_rest)
    }

    /// The watch has brought that version, which includes earlier writes of this process. Returns
    /// whether another client has written the work since this process last read it.
    pub fn saw(&mut self, version: &str) -> bool {
        self.written.take_if(|written| !is_older(Some(version), &written.version));
        self.edits.are_behind(version)
    }

    /// This process has just written the work, which now has this content.
    pub fn wrote(&mut self, work: &Work) {
        self.edits.know(&work.version);
        self.written = Some(Box::new(Written {
            version: work.version.clone(),
            finalizers: work.finalizers.clone(),
            status: work.status.clone(),
        }));
    }

    /// The state to start from, in this generation of the work.
    pub fn begin(&mut self, generation: i64) -> Begun {
        Begun::after(self.begun.take().map(|begun| *begun), generation)
    }

    /// Whether the next pass continues one whose slot ended.
    pub fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// Keeps the progress of a pass if its slot ended. After any other failure, or without room for
    /// all of the progress, the next pass processes everything: objects processed in earlier slots
    /// are no longer owed, but their outcomes are not on the hub yet.
    pub fn keep<T>(&mut self, begun: Begun, ended: &Result<T, Failure>, allowance: &Allowance) {
        match ended {
            Err(failure) if failure.is_for_slot() => {
                let (begun, is_whole) = begun.kept(allowance);
                self.begun = begun.map(Box::new);
                if !is_whole {
                    self.settled = None;
                }
            }
            Err(_) if begun.is_more() => self.settled = None,
            _ => {}
        }
    }

    /// Called after a failed pass. The owed objects would be kept until the member answers; if the
    /// next pass processes all objects anyway, they are forgotten.
    pub fn owes_all(&mut self, generation: i64) {
        if self.unwatched.is_some() {
            self.settled = None;
        }
        if self.settled != Some(generation) {
            self.owed = HashSet::new();
        }
    }

    /// Reserves `bytes` for the state of its objects. Without room, none of it is kept. Returns
    /// whether there is room.
    pub fn make_room(&mut self, bytes: usize, allowance: &Allowance, metrics: &Delivery) -> bool {
        let has_room = if self.room.is_some() {
            self.grow(bytes)
        } else {
            self.room = allowance.take(bytes);
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

    /// The same, if it has a reservation already: if that cannot grow, it stays.
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

    /// Stores a status that must wait. Without room for it, it is returned, and the next pass
    /// processes all objects.
    pub fn put_back(&mut self, status: ManifestWorkStatus, allowance: &Allowance) -> Option<ManifestWorkStatus> {
        self.waiting = allowance.take(allowance::weighs(&status));
        if self.waiting.is_none() {
            self.settled = None;
            return Some(status);
        }
        self.status = Some(status);
        None
    }

    /// Takes the status to write now.
    pub fn take_status(&mut self) -> Option<ManifestWorkStatus> {
        self.waiting = None;
        self.status.take()
    }

    /// Records how many objects are being deleted. Returns the wait until the next check; usually
    /// the end of an object is seen before.
    pub fn goes(&mut self, left: usize) -> Duration {
        let times = if self.going.0 == left { self.going.1 } else { 0 };
        self.going = (left, times.saturating_add(1));
        GOING.wait(times)
    }

    /// No objects are being deleted.
    pub fn clear_going(&mut self) {
        self.going = (0, 0);
    }

    /// The objects that are due.
    pub fn due(&self, now: Instant) -> impl Iterator<Item = &Identity> {
        self.objects.due(now)
    }

    /// Number of objects that another client changes back after repairs.
    pub fn contested(&self) -> usize {
        self.objects.contested(Instant::now())
    }

    /// When the next object is due.
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

    /// The watch has brought a work at that version: as [`Memory::saw`]. A pass in progress finds
    /// that out at its end.
    pub fn saw(&self, key: &Key, version: &str) -> bool {
        let memory = self.0.lock().get(key).map(Arc::clone);
        memory.is_some_and(|memory| memory.try_lock().is_ok_and(|mut memory| memory.saw(version)))
    }

    /// The works that no longer exist.
    pub fn missing(&self, is_there: impl Fn(&Key) -> bool) -> Vec<Key> {
        self.0.lock().keys().filter(|key| !is_there(key)).cloned().collect()
    }

    /// The works of a cluster.
    pub fn of_cluster(&self, cluster: &str) -> Vec<Key> {
        self.0.lock().keys().filter(|(namespace, _)| namespace == cluster).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use kube::api::DynamicObject;
    use serde_json::json;

    use super::*;
    use crate::parts::manifestworks::shelf::MemoryLimits;

    fn roomy() -> Allowance {
        Allowance::new(MemoryLimits { in_all: usize::MAX, of_one: usize::MAX })
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
            let allowance = Allowance::new(MemoryLimits { in_all: 1, of_one: 1 });
            let mut memory = Memory { settled, owed: HashSet::from([Identity::default()]), ..Memory::default() };
            memory.make_room(if has_room { 1 } else { 2 }, &allowance, &Delivery::default());
            memory.owes_all(1);
            memory.owed.len()
        };
        assert_eq!([owed(Some(1), true), owed(None, true), owed(Some(2), true), owed(Some(1), false)], [1, 0, 0, 0]);
    }

    #[test]
    fn each_twin_is_reported_once_and_so_many_at_most() {
        let mut memory = Memory::default();
        assert!(memory.met("a") && memory.met("b") && !memory.met("a") && !memory.met("b"));
        let told = (0..10).filter(|number| memory.met(&number.to_string())).count();
        assert_eq!(told, TWINS - 2);
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
