//! One cluster that is delivered to: how it is reached, what was observed of it, and which works
//! have a slot.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use api::cluster_name::ClusterName;
use net::backoff::Backoff;
use net::permit::Permit;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::budget::Budget;
use super::discovery::Kinds;
use super::failure::Failure;
use super::lanes::{Lane, Lanes};
use super::line::Line;
use super::member::Member;
use super::rest::Rest;
use super::shelf::Room;
use super::sights::{Lists, ListsOfOne, Sights};
use super::verdicts::Verdicts;

/// Works of one cluster that are worked on at a time.
const MOST: usize = 4;
/// Works of all clusters that are slow, of each of which one is worked on at a time.
const SLOW_WORKS: usize = 64;
/// Works above [`LIGHT`] that are worked on at a time: of all clusters, and of one. The spec and
/// the status of one take up to 24 MiB each.
const HEAVY_WORKS: usize = 8;
const HEAVY_OF_ONE: usize = 1;
/// Works whose text is not kept that are read, and worked on, at a time, of all clusters. Of one
/// cluster, as many as are worked on.
const READ_WORKS: usize = 32;
const _: () = assert!(4 * MOST <= READ_WORKS, "a cluster has no more than a quarter");
/// Bytes of memory that most works take less of while they are worked on: of 350 KiB of text.
const LIGHT: usize = 8 << 20;
/// Bytes of what is remembered of objects between two looks. 100 objects in each of 1,000 clusters
/// take about 66 MiB.
pub const REMEMBERED: Room = Room { in_all: 96 << 20, of_one: 16 << 20 };
/// Bytes of what works have begun, and of statuses that wait to be written.
pub const KEPT: Room = Room { in_all: 32 << 20, of_one: 4 << 20 };
/// How long a slot lasts; requests under way are finished. Then others go before the work's next
/// slot.
const LONGEST_SLOT: Duration = Duration::from_mins(1);

/// Between tries because the hub's objects of the cluster changed.
const BETWEEN_TRIES: Duration = Duration::from_secs(15);
/// Between tries because the member answered another request.
const BETWEEN_ANSWERS: Duration = Duration::from_secs(5);

/// What all clusters share.
#[derive(Clone)]
pub struct Shared {
    /// Threads that work out what objects say.
    pub rules: Lanes,
    pub lists: Lists,
    remembered: Budget,
    kept: Budget,
    slow_works: Arc<AtomicUsize>,
    heavy_works: Arc<AtomicUsize>,
    read_works: Arc<AtomicUsize>,
    /// Slow clusters that have no slot because enough others have one.
    slow_line: Arc<Mutex<Line>>,
}

pub struct Target {
    pub member: Member,
    pub kinds: Kinds,
    pub sights: Sights,
    pub verdicts: Verdicts,
    pub rules: Lane,
    pub lists: ListsOfOne,
    /// Room for what is remembered of its objects.
    pub remembered: Budget,
    /// Room for what its works have begun, and for statuses that wait.
    pub kept: Budget,
    at_work: Arc<AtomicUsize>,
    /// Those of them that may go on while it is slow.
    slow: Arc<AtomicUsize>,
    /// Those of them that take much memory.
    heavy: Arc<AtomicUsize>,
    of_all: Shared,
    /// An Event says that not all of its works are kept.
    is_told: AtomicBool,
    /// An Event says that the objects of not all of its works are watched.
    is_told_unwatched: AtomicBool,
    /// Works that wait for a slot.
    waiting: Mutex<Line>,
    away: Mutex<Away>,
    /// For how long its works are to leave it alone.
    asked: Rest,
}

/// Whether it answers.
#[derive(Debug, Default)]
struct Away {
    /// In a row.
    failures: u32,
    /// When it is tried again.
    until: Option<Instant>,
    /// Why it was away last.
    cause: String,
    /// When it was tried last because the hub's objects of it changed.
    tried: Option<Instant>,
    /// For when it was tried last because it had answered another request.
    answered: Option<Instant>,
}

/// A permit to work on one work, for a while.
pub struct Slot {
    target: Arc<Target>,
    _permit: Permit<AtomicUsize>,
    /// When it is over.
    until: Instant,
    /// Whether its first step was begun.
    has_begun: AtomicBool,
    /// Its place among those of slow clusters.
    slow: Mutex<Option<[Permit<AtomicUsize>; 2]>>,
}

/// A step within a slot: one object, or one kind that is looked up.
pub struct Step<'a> {
    slot: &'a Slot,
    /// It is always finished: a slot without any step would be followed by others like it.
    is_first: bool,
}

/// The clusters that are delivered to, and no others.
pub struct Targets {
    targets: Mutex<HashMap<String, Arc<Target>>>,
    of_all: Shared,
}

// === impl Shared ===

impl Shared {
    pub fn new(rules: Lanes) -> Self {
        Self {
            rules,
            heavy_works: Arc::default(),
            read_works: Arc::default(),
            lists: Lists::default(),
            remembered: Budget::new(REMEMBERED),
            kept: Budget::new(KEPT),
            slow_works: Arc::default(),
            slow_line: Arc::default(),
        }
    }
}

// === impl Slot ===

impl Slot {
    /// Begins a step.
    ///
    /// # Errors
    ///
    /// As [`Step::goes_on`].
    pub fn step(&self) -> Result<Step<'_>, Failure> {
        let step = Step { slot: self, is_first: !self.has_begun.swap(true, Ordering::Relaxed) };
        step.goes_on().map(|()| step)
    }
}

// === impl Step ===

impl Step<'_> {
    /// Whether there may be another request.
    ///
    /// # Errors
    ///
    /// Its cluster is slow, and others of its works, or works of enough other slow clusters, go
    /// before; or the slot has lasted for long enough, which ends no first step.
    pub fn goes_on(&self) -> Result<(), Failure> {
        let Self { slot, is_first } = *self;
        if !is_first && Instant::now() >= slot.until {
            return Err(Failure::SlotOver);
        }
        let mut slow = slot.slow.lock();
        if slow.is_none() && slot.target.is_slow() {
            *slow = Some(slot.target.slow_slot().ok_or(Failure::Slow)?);
        }
        Ok(())
    }
}

// === impl Target ===

impl Target {
    fn new(member: Member, of_all: &Shared) -> Self {
        Self {
            rules: of_all.rules.lane(),
            lists: of_all.lists.of_one(),
            remembered: of_all.remembered.of_one(),
            kept: of_all.kept.of_one(),
            slow: Arc::default(),
            heavy: Arc::default(),
            of_all: of_all.clone(),
            is_told: AtomicBool::new(false),
            is_told_unwatched: AtomicBool::new(false),
            asked: Rest::default(),
            member,
            kinds: Kinds::default(),
            sights: Sights::default(),
            verdicts: Verdicts::default(),
            at_work: Arc::default(),
            waiting: Mutex::default(),
            away: Mutex::default(),
        }
    }

    /// A slot for a work; none: it gets one when another work's ends.
    pub fn slot(self: &Arc<Self>, work: &str) -> Option<Slot> {
        // Before: one that ends meanwhile finds it.
        if self.waiting.lock().insert(work) {
            self.member.metrics.waits(true);
        }
        // Of one that does not answer, one is enough to find out.
        let most = if self.away.lock().failures > 0 { 1 } else { MOST };
        let permit = Permit::of(&self.at_work, most)?;
        let slow = if self.is_slow() { Some(self.slow_slot()?) } else { None };
        if self.waiting.lock().remove(work) {
            self.member.metrics.waits(false);
        }
        let (until, has_begun) = (Instant::now() + LONGEST_SLOT, AtomicBool::new(false));
        Some(Slot { target: Arc::clone(self), _permit: permit, until, has_begun, slow: Mutex::new(slow) })
    }

    /// Room for a work that takes so many bytes of memory while it is worked on. None: others take
    /// it, and the work comes again: one that waited would keep its slot from light ones.
    pub fn room(&self, weight: usize) -> Option<Vec<Permit<AtomicUsize>>> {
        if weight <= LIGHT {
            return Some(Vec::new());
        }
        let own = Permit::of(&self.heavy, HEAVY_OF_ONE)?;
        Some(vec![own, Permit::of(&self.of_all.heavy_works, HEAVY_WORKS)?])
    }

    /// Room for the text of a work that is not kept, likewise.
    pub fn reading(&self) -> Option<Permit<AtomicUsize>> {
        Permit::of(&self.of_all.read_works, READ_WORKS)
    }

    /// Not all of its works are kept. Returns whether that is new.
    pub fn is_first_beyond(&self) -> bool {
        !self.is_told.swap(true, Ordering::Relaxed)
    }

    /// The objects of not all of its works are watched. Returns whether that is new.
    pub fn is_first_unwatched(&self) -> bool {
        !self.is_told_unwatched.swap(true, Ordering::Relaxed)
    }

    /// The works that get a slot next, now that one has ended: as many as there are slots.
    pub fn next(&self) -> Vec<String> {
        let free = if self.is_slow() { 1 } else { MOST.saturating_sub(self.at_work.load(Ordering::Relaxed)) };
        let mut waiting = self.waiting.lock();
        let next: Vec<String> = std::iter::from_fn(|| waiting.call()).take(free.max(1)).collect();
        for _ in &next {
            self.member.metrics.waits(false);
        }
        next
    }

    /// Whether its answers, or what its works ask of them, take long again and again.
    pub fn is_slow(&self) -> bool {
        self.member.is_slow() || self.rules.is_slow()
    }

    fn slow_slot(&self) -> Option<[Permit<AtomicUsize>; 2]> {
        let own = Permit::of(&self.slow, 1)?;
        let of_all = || Permit::of(&self.of_all.slow_works, SLOW_WORKS);
        let in_line = || {
            self.of_all.slow_line.lock().insert(self.member.cluster.as_str());
            // One may have ended just before.
            of_all()
        };
        let one = of_all().or_else(in_line)?;
        // It has what it waited for: next time, it waits behind those that wait by now.
        self.of_all.slow_line.lock().remove(self.member.cluster.as_str());
        Some([own, one])
    }

    /// Until it is tried again.
    pub fn rest(&self) -> Option<Duration> {
        let until = self.away.lock().until?;
        until.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero())
    }

    /// It did not answer, or asked to be left alone for `at_least` so long. Returns after how long
    /// it is tried again, and whether the cause is new. Failures at the same time count once.
    pub fn is_away(&self, at_least: Duration, cause: &str) -> (Duration, bool) {
        let mut away = self.away.lock();
        let is_news = away.cause != cause;
        if is_news {
            cause.clone_into(&mut away.cause);
        }
        let now = Instant::now();
        if !at_least.is_zero() {
            self.asked.ask(at_least);
            // Not the other way round: an API server may turn lists away and take writes.
            self.lists.rest.ask(at_least);
        }
        if away.until.is_none_or(|until| until <= now) {
            away.until = Some(now + Backoff::MEMBER.wait(away.failures));
            away.failures = away.failures.saturating_add(1);
        }
        away.until = away.until.max(self.asked.until());
        (away.until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now)), is_news)
    }

    /// It answered. Returns whether that is new. It is not while it asked to be left alone:
    /// requests that were under way then are answered, too.
    pub fn is_back(&self) -> bool {
        let mut away = self.away.lock();
        self.asked.until().is_none() && std::mem::take(&mut *away).failures > 0
    }

    /// An object of the hub that is about it changed. Returns whether it is tried: changes each
    /// second are no reason for a try each second, and none is while the cluster itself asked to be
    /// left alone.
    pub fn try_now(&self) -> bool {
        let (mut away, now) = (self.away.lock(), Instant::now());
        if self.asked.until().is_some() || away.tried.is_some_and(|tried| now < tried + BETWEEN_TRIES) {
            return false;
        }
        (away.until, away.tried) = (None, Some(now));
        true
    }

    /// It answered another request. Returns whether it is tried sooner because of that: at once, or
    /// a moment after the last such try, since many others may get answers while works do not.
    /// While it asked to be left alone, it is not.
    pub fn has_answered(&self) -> bool {
        let (mut away, now) = (self.away.lock(), Instant::now());
        let at = away.answered.map_or(now, |last| now.max(last + BETWEEN_ANSWERS));
        if self.asked.until().is_some_and(|asked| at < asked) || away.until.is_none_or(|until| until <= at) {
            return false;
        }
        (away.until, away.answered) = (Some(at), Some(at));
        true
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        for _ in 0..self.waiting.get_mut().len() {
            self.member.metrics.waits(false);
        }
    }
}

// === impl Targets ===

impl Targets {
    pub fn new(of_all: Shared) -> Self {
        Self { targets: Mutex::default(), of_all }
    }

    /// The place of a cluster, made with `member` where there was none.
    pub fn of(&self, cluster: &ClusterName, member: impl FnOnce() -> Member) -> Arc<Target> {
        let mut targets = self.targets.lock();
        let target = || Arc::new(Target::new(member(), &self.of_all));
        Arc::clone(targets.entry(cluster.as_str().to_owned()).or_insert_with(target))
    }

    /// That of a cluster that had work.
    pub fn known(&self, cluster: &str) -> Option<Arc<Target>> {
        self.targets.lock().get(cluster).cloned()
    }

    /// The clusters whose works may have the slots of slow clusters that are free now.
    pub fn next_slow(&self) -> Vec<Arc<Target>> {
        let free = SLOW_WORKS.saturating_sub(self.of_all.slow_works.load(Ordering::Relaxed));
        let mut line = self.of_all.slow_line.lock();
        let next: Vec<String> = std::iter::from_fn(|| line.call()).take(free).collect();
        drop(line);
        next.iter().filter_map(|cluster| self.known(cluster)).collect()
    }

    /// The cluster is not delivered to: its watches end. Unless it `is_wanted`, which is asked
    /// under the lock that gives out its place: one that is being worked on is not closed.
    pub fn forget(&self, cluster: &str, is_wanted: impl FnOnce() -> bool) {
        let mut targets = self.targets.lock();
        if is_wanted() {
            return;
        }
        if let Some(target) = targets.remove(cluster) {
            target.member.close();
        }
    }
}

#[cfg(test)]
mod tests;
