//! Limits the bytes that a process holds for others, and chooses which holders give way.
//!
//! Bytes that were received and not yet passed on are limited for each stream by its window, and
//! for all streams together here: when the budget is exceeded, the largest holders are ended. Far
//! below the limit this costs an addition to a counter of the core's own; cores settle in steps.

mod shedding;

use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use slab::Slab;

use crate::throttle::LogThrottle;

/// Holds bytes: a stream, a request or a connection.
pub trait Holder: Send + Sync + 'static {
    fn counters(&self) -> &Counters;

    /// The owner for which its bytes count. Called when the budget is exceeded.
    fn owner(&self) -> Owner {
        Owner::Itself
    }

    /// Whether it can be ended without harm to others.
    fn may_be_ended(&self) -> bool {
        true
    }

    /// The holder must end, because it holds too much.
    fn end(&self) {
        self.counters().end();
    }
}

/// The owner for which bytes count.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Owner {
    /// No other: the holder is compared with others alone.
    Itself,
    /// Its holders are compared with others together.
    Named(String),
    /// Several that cannot be distinguished, by a name of this kind.
    Group(String),
    /// Known by address only. No user's name can equal it.
    Address(String),
    /// A server that was asked, by a name of this kind. Its bytes weigh more than others' in
    /// comparisons, because they were not requested.
    Server(String),
    /// Not authenticated: gives way before all others.
    Unauthenticated(String),
}

/// What one holder holds of one kind: recounted as it changes, and given back when dropped.
pub struct Tally<H: Holder> {
    account: Account<H>,
    counted: usize,
}

/// A holder's counters.
#[derive(Debug, Default)]
pub struct Counters {
    held: AtomicU64,
    ended: AtomicBool,
    task: AtomicWaker,
}

/// Most bytes that all holders together may hold. Cheap to clone.
pub struct Budget<H: Holder>(Arc<Shared<H>>);

struct Shared<H: Holder> {
    limit: u64,
    /// Bytes that a core counts before it settles.
    step: u64,
    shards: Box<[Shard<H>]>,
    settled: AtomicI64,
    /// Bytes of holders that were asked to give way and have not yet: the sum over their parts.
    leaving: AtomicU64,
    sheds: AtomicU64,
    thinned: AtomicU64,
    log: LogThrottle,
    /// Only one thread at a time searches for the largest.
    shedding: Mutex<()>,
}

/// One core's part of the count, on its own cache lines.
#[repr(align(128))]
struct Shard<H: Holder> {
    unsettled: AtomicI64,
    running: Mutex<Slab<Weak<Part<H>>>>,
}

/// One holder's part of a budget, given back with its last reference. Cheap to clone.
pub struct Account<H: Holder>(Arc<Part<H>>);

struct Part<H: Holder> {
    holder: H,
    /// With the shard, and its index there.
    within: Option<(Budget<H>, usize, usize)>,
    told: AtomicBool,
    /// The held bytes that count as given back, because the holder was asked to give way.
    leaving: AtomicU64,
    /// The held bytes that a library has and has not dropped yet.
    lent: AtomicU64,
    /// The holder's task waits until nothing is lent.
    awaited: AtomicBool,
}

/// Bytes that a library has: they are held until it drops them, sent or void.
struct ChargedBytes<H: Holder> {
    bytes: Bytes,
    part: Arc<Part<H>>,
}

/// Most bytes that a core counts before it settles.
const LARGEST_STEP: u64 = 1024 * 1024;
/// Below this limit every byte settles at once.
const EXACT_BELOW: u64 = 16 * 1024 * 1024;

/// Weight of a byte of a [server](Owner::Server), relative to any other.
const WEIGHT_OF_SERVERS: u64 = 4;

// === impl Owner ===

impl Owner {
    fn weight(&self) -> u64 {
        if matches!(self, Self::Server(_)) { WEIGHT_OF_SERVERS } else { 1 }
    }
}

// === impl Counters ===

impl Counters {
    /// Bytes held now.
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Ends the holder, and wakes its task.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.task.wake();
    }

    /// Fails when the holder must end. Registers its only task, which is woken for that.
    ///
    /// # Errors
    /// [`io::ErrorKind::QuotaExceeded`].
    pub fn check(&self, cx: &Context<'_>) -> io::Result<()> {
        self.task.register(cx.waker());
        if self.ended.load(Ordering::Acquire) {
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, "ended here: it held too much, or was closed"));
        }
        Ok(())
    }
}

impl<H: Holder> Holder for Arc<H> {
    fn counters(&self) -> &Counters {
        H::counters(self)
    }

    fn owner(&self) -> Owner {
        H::owner(self)
    }

    fn may_be_ended(&self) -> bool {
        H::may_be_ended(self)
    }

    fn end(&self) {
        H::end(self);
    }
}

// === impl Budget ===

impl<H: Holder> Budget<H> {
    /// A budget of `bytes`, counted in one place.
    pub fn new(bytes: u64) -> Self {
        Self::of_cores(bytes, 1)
    }

    /// A budget of `bytes`, counted by each of `cores`. The sum is exact to a 64th of the limit.
    pub fn of_cores(bytes: u64, cores: usize) -> Self {
        let cores = cores.max(1);
        let step = if bytes < EXACT_BELOW { 0 } else { (bytes / 64 / cores as u64).min(LARGEST_STEP) };
        let shard = |_| Shard { unsettled: AtomicI64::new(0), running: Mutex::default() };
        Self(Arc::new(Shared {
            limit: bytes,
            step,
            shards: (0..cores).map(shard).collect(),
            settled: AtomicI64::new(0),
            leaving: AtomicU64::new(0),
            sheds: AtomicU64::new(0),
            thinned: AtomicU64::new(0),
            log: LogThrottle::default(),
            shedding: Mutex::default(),
        }))
    }

    /// An account for `holder`, whose task runs on `core`.
    pub fn open(&self, core: usize, holder: H) -> Account<H> {
        let core = core % self.0.shards.len();
        let mut running = self.0.shards[core].running.lock();
        let entry = running.vacant_entry();
        let part = Arc::new(Part::new(holder, Some((self.clone(), core, entry.key()))));
        entry.insert(Arc::downgrade(&part));
        Account(part)
    }

    /// The limit in bytes.
    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    /// Bytes still free; zero if exceeded.
    pub fn free(&self) -> u64 {
        self.0.limit.saturating_sub(self.held())
    }

    /// Bytes held by all.
    pub fn held(&self) -> u64 {
        let unsettled: i64 = self.0.shards.iter().map(|shard| shard.unsettled.load(Ordering::Relaxed)).sum();
        u64::try_from(self.0.settled.load(Ordering::Relaxed) + unsettled).unwrap_or(0)
    }

    /// Total number of holders that were asked to [give way](Self::thin_out) because of their
    /// number.
    pub fn thinned(&self) -> u64 {
        self.0.thinned.load(Ordering::Relaxed)
    }

    /// Total number of holders that had to give way because of held bytes.
    pub fn sheds(&self) -> u64 {
        self.0.sheds.load(Ordering::Relaxed)
    }

    fn add(&self, core: usize, bytes: u64) {
        if self.count(core, i64::try_from(bytes).unwrap_or(i64::MAX)) && self.is_exceeded() {
            self.shed();
        }
    }

    fn subtract(&self, core: usize, bytes: u64) {
        self.count(core, -i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Returns whether the core has settled.
    fn count(&self, core: usize, bytes: i64) -> bool {
        let shard = &self.0.shards[core];
        let unsettled = shard.unsettled.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let is_due = unsettled.unsigned_abs() > self.0.step;
        if is_due {
            shard.settle(&self.0.settled);
        }
        is_due
    }

    /// Settled bytes of the holders that stay.
    fn staying(&self) -> u64 {
        let settled = u64::try_from(self.0.settled.load(Ordering::Relaxed)).unwrap_or(0);
        settled.saturating_sub(self.0.leaving.load(Ordering::Relaxed))
    }

    fn is_exceeded(&self) -> bool {
        self.staying() > self.0.limit
    }

    /// Whether the settled bytes exceed the limit.
    fn is_overdrawn(&self) -> bool {
        u64::try_from(self.0.settled.load(Ordering::Relaxed)).unwrap_or(0) > self.0.limit
    }
}

impl<H: Holder> Clone for Budget<H> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<H: Holder> std::fmt::Debug for Budget<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Budget").field("limit", &self.limit()).field("held", &self.held()).finish()
    }
}

// === impl Shard ===

impl<H: Holder> Shard<H> {
    fn settle(&self, settled: &AtomicI64) {
        settled.fetch_add(self.unsettled.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }
}

// === impl Account ===

impl<H: Holder> Account<H> {
    /// An account without a budget, which counts only for itself.
    pub fn unlimited(holder: H) -> Self {
        Self(Arc::new(Part::new(holder, None)))
    }

    pub fn holder(&self) -> &H {
        &self.0.holder
    }

    /// Counts `bytes` more.
    pub fn take(&self, bytes: usize) {
        let bytes = bytes as u64;
        self.0.holder.counters().held.fetch_add(bytes, Ordering::Relaxed);
        if let Some((budget, core, _)) = &self.0.within {
            budget.add(*core, bytes);
        }
    }

    /// Counts `bytes` fewer.
    pub fn give(&self, bytes: usize) {
        self.0.give(bytes as u64);
    }

    /// A count for something that changes its size.
    pub fn tally(&self) -> Tally<H> {
        Tally { account: self.clone(), counted: 0 }
    }

    /// Bytes held now.
    pub fn held(&self) -> u64 {
        self.0.holder.counters().held()
    }

    /// Changes the count of something from `counted` to `held`.
    pub fn recount(&self, counted: &mut usize, held: usize) {
        let before = std::mem::replace(counted, held);
        if held > before {
            self.take(held - before);
        } else if held < before {
            self.give(before - held);
        }
    }

    /// Counts bytes from now on, and lends them to a library.
    pub fn charge(&self, bytes: Bytes) -> Bytes {
        self.take(bytes.len());
        self.lend(bytes)
    }

    /// Lends bytes that count already to a library.
    pub fn lend(&self, bytes: Bytes) -> Bytes {
        self.0.lent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Bytes::from_owner(ChargedBytes { bytes, part: Arc::clone(&self.0) })
    }

    /// Whether a library still has lent bytes.
    pub fn has_lent(&self) -> bool {
        self.0.lent.load(Ordering::Relaxed) > 0
    }

    /// Bytes that libraries have. The task that [checks](Account::check) is woken when none are
    /// left.
    pub fn lent(&self) -> u64 {
        self.0.awaited.store(true, Ordering::SeqCst);
        self.0.lent.load(Ordering::SeqCst)
    }

    /// Whether more is held than allowed, including by holders that were asked to give way and have
    /// not yet.
    pub fn is_overdrawn(&self) -> bool {
        self.0.within.as_ref().is_some_and(|(budget, ..)| budget.is_overdrawn())
    }

    /// Whether the holder must end.
    pub fn is_ended(&self) -> bool {
        self.0.holder.counters().ended.load(Ordering::Acquire)
    }

    /// Completes when the holder must end. For its only task.
    pub async fn ended(&self) {
        let ended = |cx: &mut Context<'_>| if self.check(cx).is_ok() { Poll::Pending } else { Poll::Ready(()) };
        poll_fn(ended).await;
    }

    /// See [`Counters::check`].
    ///
    /// # Errors
    /// The same as there.
    pub fn check(&self, cx: &Context<'_>) -> io::Result<()> {
        self.0.holder.counters().check(cx)
    }
}

impl<H: Holder> Clone for Account<H> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

// === impl Tally ===

impl<H: Holder> Tally<H> {
    /// Sets the number of held bytes.
    pub fn set(&mut self, held: usize) {
        self.account.recount(&mut self.counted, held);
    }

    /// Raises the number of held bytes to at least this: for a buffer that never shrinks.
    pub fn raise(&mut self, held: usize) {
        if held > self.counted {
            self.set(held);
        }
    }

    pub fn account(&self) -> &Account<H> {
        &self.account
    }
}

impl<H: Holder> Drop for Tally<H> {
    fn drop(&mut self) {
        self.set(0);
    }
}

// === impl Part ===

impl<H: Holder> Part<H> {
    fn new(holder: H, within: Option<(Budget<H>, usize, usize)>) -> Self {
        let (told, awaited) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { holder, within, told, leaving: AtomicU64::new(0), lent: AtomicU64::new(0), awaited }
    }

    fn give(&self, bytes: u64) {
        self.holder.counters().held.fetch_sub(bytes, Ordering::Relaxed);
        if let Some((budget, core, _)) = &self.within {
            self.left(budget, bytes);
            budget.subtract(*core, bytes);
        }
    }

    /// A holder that was asked to give way has given `bytes` back. That is not only at its end:
    /// HTTP/2 keeps the frame that it is writing, and with it the part, while the peer reads
    /// nothing.
    fn left(&self, budget: &Budget<H>, bytes: u64) {
        if self.leaving.load(Ordering::Relaxed) == 0 {
            return;
        }
        let less = |leaving: u64| Some(leaving.saturating_sub(bytes));
        if let Ok(before) = self.leaving.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            budget.0.leaving.fetch_sub(before.min(bytes), Ordering::Relaxed);
        }
    }
}

impl<H: Holder> Drop for Part<H> {
    fn drop(&mut self) {
        let held = self.holder.counters().held.swap(0, Ordering::Relaxed);
        let Some((budget, core, id)) = &self.within else { return };
        // From here on, searches no longer find it.
        budget.0.shards[*core].running.lock().try_remove(*id);
        budget.subtract(*core, held);
        budget.0.leaving.fetch_sub(self.leaving.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }
}

// === impl ChargedBytes ===

impl<H: Holder> AsRef<[u8]> for ChargedBytes<H> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl<H: Holder> Drop for ChargedBytes<H> {
    fn drop(&mut self) {
        let bytes = self.bytes.len() as u64;
        self.part.give(bytes);
        if self.part.lent.fetch_sub(bytes, Ordering::SeqCst) == bytes && self.part.awaited.load(Ordering::SeqCst) {
            self.part.holder.counters().task.wake();
        }
    }
}

#[cfg(test)]
mod tests;
