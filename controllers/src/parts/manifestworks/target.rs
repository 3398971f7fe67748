//! A cluster with delivery: how it is reached, what was observed of it, and which of its works have
//! a slot.

mod slot;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use api::cluster_name::ClusterName;
use net::backoff::Backoff;
use net::permit::Permit;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::allowance::Allowance;
use super::discovery::Kinds;
use super::lanes::{Lane, Lanes};
use super::member::Member;
use super::rest::Rest;
use super::shelf::MemoryLimits;
use super::sights::{Lists, ListsOfOne, Sights};
use super::verdicts::Verdicts;
use super::waiting::WaitingNames;

pub use self::slot::{Slot, Step};

/// Works of one cluster that are processed concurrently.
const MOST: usize = 4;
/// Works of slow clusters that are processed concurrently, one of each.
const SLOW_WORKS: usize = 64;
/// Works above [`LIGHT`] that are processed concurrently: of all clusters, and of one. The spec and
/// the status of one take up to 24 MiB each.
const HEAVY_WORKS: usize = 8;
const HEAVY_OF_ONE: usize = 1;
/// Works whose text is not kept that are read and processed concurrently, of all clusters. Of one
/// cluster, as many as are processed.
const READ_WORKS: usize = 32;
const _: () = assert!(4 * MOST <= READ_WORKS, "a cluster has no more than a quarter");
/// Memory in bytes below which most works stay while they are processed: that of 350 KiB of text.
const LIGHT: usize = 8 << 20;
/// Limit of the state of objects between two passes, in bytes. 100 objects in each of 1,000
/// clusters take about 66 MiB.
pub const REMEMBERED: MemoryLimits = MemoryLimits { in_all: 96 << 20, of_one: 16 << 20 };
/// Limit of the progress of unfinished passes, and of statuses that wait to be written, in bytes.
pub const KEPT: MemoryLimits = MemoryLimits { in_all: 32 << 20, of_one: 4 << 20 };
/// Length of a slot; requests in flight are completed. After that, other works come before this
/// work's next slot.
const LONGEST_SLOT: Duration = Duration::from_mins(1);

/// Interval of attempts because the hub's objects of the cluster changed.
const BETWEEN_TRIES: Duration = Duration::from_secs(15);
/// Interval of attempts because the member answered another request.
const BETWEEN_ANSWERS: Duration = Duration::from_secs(5);

/// The capacity that all clusters share.
#[derive(Clone)]
pub struct Shared {
    /// Threads that evaluate rules on objects.
    pub rules: Lanes,
    pub lists: Lists,
    remembered: Allowance,
    kept: Allowance,
    slow_works: Arc<AtomicUsize>,
    heavy_works: Arc<AtomicUsize>,
    read_works: Arc<AtomicUsize>,
    /// Slow clusters without a slot, because enough others have one.
    slow_line: Arc<Mutex<WaitingNames>>,
}

pub struct Target {
    pub member: Member,
    pub kinds: Kinds,
    pub sights: Sights,
    pub verdicts: Verdicts,
    pub rules: Lane,
    pub lists: ListsOfOne,
    /// Allowance for the state of its objects.
    pub remembered: Allowance,
    /// Allowance for unfinished passes of its works, and for waiting statuses.
    pub kept: Allowance,
    at_work: Arc<AtomicUsize>,
    /// Number of its works that may continue while it is slow.
    slow: Arc<AtomicUsize>,
    /// Number of its works that take much memory.
    heavy: Arc<AtomicUsize>,
    of_all: Shared,
    /// An Event has reported that not all of its works are kept.
    is_told: AtomicBool,
    /// An Event has reported that the objects of some of its works are not watched.
    is_told_unwatched: AtomicBool,
    /// Works that wait for a slot.
    waiting: Mutex<WaitingNames>,
    away: Mutex<Away>,
    /// How long it asked its works to leave it alone.
    asked: Rest,
}

/// Whether the cluster answers.
#[derive(Debug, Default)]
struct Away {
    /// Failures in a row.
    failures: u32,
    /// Time of the next attempt.
    until: Option<Instant>,
    /// The last cause.
    cause: String,
    /// Time of the last attempt because the hub's objects of it changed.
    tried: Option<Instant>,
    /// Time of the last attempt scheduled because it had answered another request.
    answered: Option<Instant>,
}

/// The clusters with delivery, and no others.
pub struct Targets {
    targets: Mutex<HashMap<String, Arc<Target>>>,
    of_all: Shared,
}

// === impl Shared ===

impl Shared {
    pub fn new(rules: Lanes) -> Self {
        Self::within(rules, REMEMBERED, KEPT)
    }

    /// With these limits of what is remembered of objects, and of what is kept of unfinished passes
    /// and statuses.
    pub fn within(rules: Lanes, remembered: MemoryLimits, kept: MemoryLimits) -> Self {
        Self {
            rules,
            heavy_works: Arc::default(),
            read_works: Arc::default(),
            lists: Lists::default(),
            remembered: Allowance::new(remembered),
            kept: Allowance::new(kept),
            slow_works: Arc::default(),
            slow_line: Arc::default(),
        }
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

    /// A slot for a work. None: it gets one when another work's slot ends.
    pub fn slot(self: &Arc<Self>, work: &str) -> Option<Slot> {
        // Before the attempt, so that a slot that ends meanwhile finds the work in the queue.
        if self.waiting.lock().insert(work) {
            self.member.metrics.waits(true);
        }
        // For a cluster that does not answer, one work is enough to find out.
        let most = if self.away.lock().failures > 0 { 1 } else { MOST };
        let permit = Permit::of(&self.at_work, most)?;
        let slow = if self.is_slow() { Some(self.slow_slot()?) } else { None };
        if self.waiting.lock().remove(work) {
            self.member.metrics.waits(false);
        }
        let (until, has_begun) = (Instant::now() + LONGEST_SLOT, AtomicBool::new(false));
        Some(Slot { target: Arc::clone(self), _permit: permit, until, has_begun, slow: Mutex::new(slow) })
    }

    /// Reserves room for a work that takes this many bytes of memory while it is processed. None:
    /// others have the room, and the work comes again later, because waiting would keep its slot
    /// from light works.
    pub fn room(&self, weight: usize) -> Option<Vec<Permit<AtomicUsize>>> {
        if weight <= LIGHT {
            return Some(Vec::new());
        }
        let own = Permit::of(&self.heavy, HEAVY_OF_ONE)?;
        Some(vec![own, Permit::of(&self.of_all.heavy_works, HEAVY_WORKS)?])
    }

    /// Reserves room for the text of a work that is not kept, in the same way.
    pub fn reading(&self) -> Option<Permit<AtomicUsize>> {
        Permit::of(&self.of_all.read_works, READ_WORKS)
    }

    /// Not all of its works are kept. Returns whether that is new.
    pub fn mark_beyond(&self) -> bool {
        !self.is_told.swap(true, Ordering::Relaxed)
    }

    /// The objects of not all of its works are watched. Returns whether that is new.
    pub fn mark_unwatched(&self) -> bool {
        !self.is_told_unwatched.swap(true, Ordering::Relaxed)
    }

    /// The works that get a slot next, after one has ended: as many as there are free slots.
    pub fn next(&self) -> Vec<String> {
        let free = if self.is_slow() { 1 } else { MOST.saturating_sub(self.at_work.load(Ordering::Relaxed)) };
        let mut waiting = self.waiting.lock();
        let next: Vec<String> = std::iter::from_fn(|| waiting.call()).take(free.max(1)).collect();
        for _ in &next {
            self.member.metrics.waits(false);
        }
        next
    }

    /// Whether its answers, or its works' rules on them, repeatedly take long.
    pub fn is_slow(&self) -> bool {
        self.member.is_slow() || self.rules.is_slow()
    }

    fn slow_slot(&self) -> Option<[Permit<AtomicUsize>; 2]> {
        let own = Permit::of(&self.slow, 1)?;
        let of_all = || Permit::of(&self.of_all.slow_works, SLOW_WORKS);
        let in_line = || {
            self.of_all.slow_line.lock().insert(self.member.cluster.as_str());
            // A slot may have ended just before.
            of_all()
        };
        let one = of_all().or_else(in_line)?;
        // It has got a slot: the next time, it waits behind the clusters that wait by then.
        self.of_all.slow_line.lock().remove(self.member.cluster.as_str());
        Some([own, one])
    }

    /// Time until the next attempt.
    pub fn rest(&self) -> Option<Duration> {
        let until = self.away.lock().until?;
        until.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero())
    }

    /// It did not answer, or asked to be left alone for `at_least` so long. Returns after how long
    /// it is tried again, and whether the cause is new. Failures at the same time count once.
    pub fn failed(&self, at_least: Duration, cause: &str) -> (Duration, bool) {
        let mut away = self.away.lock();
        let is_news = away.cause != cause;
        if is_news {
            cause.clone_into(&mut away.cause);
        }
        let now = Instant::now();
        if !at_least.is_zero() {
            self.asked.ask(at_least);
            // Not vice versa: an API server may refuse lists and accept writes.
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
    /// requests that were in flight then are answered, too.
    pub fn answered(&self) -> bool {
        let mut away = self.away.lock();
        self.asked.until().is_none() && std::mem::take(&mut *away).failures > 0
    }

    /// A hub's object about the cluster changed. Returns whether the cluster is tried now: frequent
    /// changes cause no frequent attempts, and while the cluster itself asked to be left alone,
    /// there is none.
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
    pub fn answered_another(&self) -> bool {
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

    /// The target of a cluster, created with `member` if there was none.
    pub fn of(&self, cluster: &ClusterName, member: impl FnOnce() -> Member) -> Arc<Target> {
        let mut targets = self.targets.lock();
        let target = || Arc::new(Target::new(member(), &self.of_all));
        Arc::clone(targets.entry(cluster.as_str().to_owned()).or_insert_with(target))
    }

    /// The target of a cluster that has had work.
    pub fn known(&self, cluster: &str) -> Option<Arc<Target>> {
        self.targets.lock().get(cluster).cloned()
    }

    /// The clusters whose works may use the free slots of slow clusters.
    pub fn next_slow(&self) -> Vec<Arc<Target>> {
        let free = SLOW_WORKS.saturating_sub(self.of_all.slow_works.load(Ordering::Relaxed));
        let mut line = self.of_all.slow_line.lock();
        let next: Vec<String> = std::iter::from_fn(|| line.call()).take(free).collect();
        drop(line);
        next.iter().filter_map(|cluster| self.known(cluster)).collect()
    }

    /// The cluster no longer gets deliveries: its watches end. Unless it `is_wanted`, which is
    /// called under the lock that creates targets, so that a cluster in use is not closed.
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
