//! Limits the bytes that a process holds for others, and chooses which holders give way.
//!
//! Bytes that were received and not yet passed on are limited for each stream by its window, and
//! for all streams together here: when the budget is exceeded, the largest holders are ended. Far
//! below the limit this costs an addition to a counter of the core's own; cores settle in steps.

mod account;
mod shedding;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::Context;

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use slab::Slab;

use self::account::Part;
use crate::throttle::LogThrottle;

pub use self::account::Account;

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

/// Bytes that HTTP/2 keeps for a piece that waits to be sent, in addition to the piece. h2 queues
/// each `send_data` as a frame of its own in a slab (`proto/streams/buffer.rs` of 0.4.20): a slot
/// of some 300 bytes, with room for a head. The piece's counter and its own memory take 100 more,
/// and a slab that grows has free slots.
pub const FRAME: usize = 512;

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

#[cfg(test)]
mod tests;
