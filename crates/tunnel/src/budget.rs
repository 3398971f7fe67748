//! How many bytes all relayed streams together may hold, and who gives way when it is too much.
//!
//! A stream holds what was taken from one side and not yet passed to the other. Each is bounded by
//! its window; together they are bounded here: when the budget is exceeded, the stream that holds
//! the most is reset. Far below the limit this costs an addition.

use std::any::Any;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Context;

use bytes::Bytes;
use foldhash::quality::RandomState;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

/// One stream's counters, kept up to date while it runs. Shared with whoever lists streams.
#[derive(Debug, Default)]
pub struct Gauge {
    /// Bytes passed from the side that opened the stream to the side that accepted it.
    pub forth: AtomicU64,
    /// Bytes passed the other way.
    pub back: AtomicU64,
    /// Bytes held now, both ways together.
    pub held: AtomicU64,
    /// Dropped with the gauge: how whoever counts streams learns that this one is over. Set by the
    /// tunnel-server's registry.
    pub keeps: OnceLock<Box<dyn Any + Send + Sync>>,
    told: AtomicBool,
    /// Of what is held, what counts as good as given back, because the stream was told to give way.
    leaving: AtomicU64,
    task: AtomicWaker,
}

/// Bytes that may be held by all streams together. Cheap to clone.
///
/// The relay gives it to `splice` and `bridge_within`, which do the counting; a stream that had to
/// give way ends with [`io::ErrorKind::QuotaExceeded`].
#[derive(Debug, Clone)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limit: u64,
    held: AtomicU64,
    /// Held by streams that were told to give way and have not yet: the sum of their gauges'.
    leaving: AtomicU64,
    sheds: AtomicU64,
    streams: Mutex<Streams>,
}

#[derive(Debug, Default)]
struct Streams {
    next: u64,
    /// With whether it was told to give way.
    running: HashMap<u64, (Arc<Gauge>, bool), RandomState>,
}

/// One running stream's part of a budget, given back when nobody has it any more.
#[derive(Debug, Clone)]
pub(crate) struct Account(Arc<Part>);

#[derive(Debug)]
struct Part {
    gauge: Arc<Gauge>,
    budget: Option<(Budget, u64)>,
    /// Of what is held, what HTTP/2 has and has not sent yet.
    lent: AtomicU64,
    /// The stream's task waits until nothing is lent.
    awaited: AtomicBool,
}

/// Bytes that HTTP/2 has: they are held until it lets go of them, sent or void.
struct Lent {
    bytes: Bytes,
    part: Arc<Part>,
}

// === impl Gauge ===

impl Gauge {
    /// Asks the stream to end: it is reset both ways. For whoever lists streams.
    pub fn end(&self) {
        self.told.store(true, Ordering::Release);
        self.task.wake();
    }

    /// Fails when the stream is to end. The task is woken for it; there is one for both ways.
    pub fn check(&self, cx: &mut Context<'_>) -> io::Result<()> {
        self.task.register(cx.waker());
        if self.told.load(Ordering::Acquire) {
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, "ended here: it held too much, or was closed"));
        }
        Ok(())
    }
}

// === impl Budget ===

impl Budget {
    pub fn new(bytes: u64) -> Self {
        Self(Arc::new(Shared {
            limit: bytes,
            held: AtomicU64::new(0),
            leaving: AtomicU64::new(0),
            sheds: AtomicU64::new(0),
            streams: Mutex::default(),
        }))
    }

    /// Bytes still free; zero when exceeded.
    pub fn free(&self) -> u64 {
        self.0.limit.saturating_sub(self.held())
    }

    /// Bytes held by all streams.
    pub fn held(&self) -> u64 {
        self.0.held.load(Ordering::Relaxed)
    }

    /// Streams that had to give way, ever.
    pub fn sheds(&self) -> u64 {
        self.0.sheds.load(Ordering::Relaxed)
    }

    /// What those hold that stay.
    fn staying(&self) -> u64 {
        self.held().saturating_sub(self.0.leaving.load(Ordering::Relaxed))
    }

    fn is_exceeded(&self) -> bool {
        self.staying() > self.0.limit
    }

    /// Tells those that hold the most to give way, until there is some air below the limit:
    /// thousands of streams that hold a little each would otherwise have all of them compared for
    /// every frame that comes.
    #[cold]
    fn shed(&self) {
        let enough = self.0.limit - self.0.limit / 16;
        let mut streams = self.0.streams.lock();
        if !self.is_exceeded() {
            return;
        }
        let mut worst: Vec<_> = streams.running.values_mut().filter(|(_, told)| !told).collect();
        worst.sort_by_cached_key(|(gauge, _)| Reverse(gauge.held.load(Ordering::Relaxed)));
        for (gauge, told) in worst {
            let held = gauge.held.load(Ordering::Relaxed);
            if held == 0 || self.staying() <= enough {
                return;
            }
            *told = true;
            gauge.leaving.store(held, Ordering::Relaxed);
            self.0.leaving.fetch_add(held, Ordering::Relaxed);
            self.0.sheds.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(held, "a stream is reset: too many bytes are held");
            gauge.end();
        }
    }
}

// === impl Account ===

impl Account {
    pub fn open(gauge: Arc<Gauge>, budget: Option<&Budget>) -> Self {
        let budget = budget.map(|budget| {
            let mut streams = budget.0.streams.lock();
            let id = streams.next;
            streams.next += 1;
            streams.running.insert(id, (Arc::clone(&gauge), false));
            (budget.clone(), id)
        });
        Self(Arc::new(Part { gauge, budget, lent: AtomicU64::new(0), awaited: AtomicBool::new(false) }))
    }

    pub fn gauge(&self) -> &Gauge {
        &self.0.gauge
    }

    /// Bytes that are held already, for HTTP/2.
    pub fn lend(&self, bytes: Bytes) -> Bytes {
        self.0.lent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Bytes::from_owner(Lent { bytes, part: Arc::clone(&self.0) })
    }

    /// How much HTTP/2 has. The task that [checks](Account::check) is woken when it is nothing any
    /// more.
    pub fn lent(&self) -> u64 {
        self.0.awaited.store(true, Ordering::SeqCst);
        self.0.lent.load(Ordering::SeqCst)
    }

    /// `bytes` more are held.
    pub fn take(&self, bytes: usize) {
        self.0.gauge.held.fetch_add(bytes as u64, Ordering::Relaxed);
        if let Some((budget, _)) = &self.0.budget {
            budget.0.held.fetch_add(bytes as u64, Ordering::Relaxed);
            if budget.is_exceeded() {
                budget.shed();
            }
        }
    }

    /// `bytes` fewer are held.
    pub fn give(&self, bytes: usize) {
        self.0.give(bytes as u64);
    }

    /// See [`Gauge::check`].
    pub fn check(&self, cx: &mut Context<'_>) -> io::Result<()> {
        self.0.gauge.check(cx)
    }
}

// === impl Part ===

impl Part {
    fn give(&self, bytes: u64) {
        self.gauge.held.fetch_sub(bytes, Ordering::Relaxed);
        if let Some((budget, _)) = &self.budget {
            self.left(budget, bytes);
            budget.0.held.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// A stream that was told to give way has given `bytes` back. Not only when it ends: HTTP/2
    /// keeps the frame that it is writing, and with it the stream's part, for as long as the link
    /// takes nothing.
    fn left(&self, budget: &Budget, bytes: u64) {
        let leaving = &self.gauge.leaving;
        if leaving.load(Ordering::Relaxed) == 0 {
            return;
        }
        let less = |leaving: u64| Some(leaving.saturating_sub(bytes));
        if let Ok(before) = leaving.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            budget.0.leaving.fetch_sub(before.min(bytes), Ordering::Relaxed);
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let held = self.gauge.held.swap(0, Ordering::Relaxed);
        let Some((budget, id)) = &self.budget else { return };
        budget.0.held.fetch_sub(held, Ordering::Relaxed);
        // Under the lock nobody is told any more.
        budget.0.streams.lock().running.remove(id);
        budget.0.leaving.fetch_sub(self.gauge.leaving.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }
}

// === impl Lent ===

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let bytes = self.bytes.len() as u64;
        self.part.give(bytes);
        if self.part.lent.fetch_sub(bytes, Ordering::SeqCst) == bytes && self.part.awaited.load(Ordering::SeqCst) {
            self.part.gauge.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts(budget: &Budget, held: &[usize]) -> Vec<Account> {
        let open = |held: &usize| {
            let account = Account::open(Arc::default(), Some(budget));
            account.take(*held);
            account
        };
        held.iter().map(open).collect()
    }

    fn is_told(account: &Account) -> bool {
        account.gauge().told.load(Ordering::Relaxed)
    }

    #[test]
    fn the_worst_give_way_and_no_more_than_need_be() {
        let budget = Budget::new(1600);
        let accounts = accounts(&budget, &[100, 700, 10, 650, 140]);
        assert_eq!((budget.free(), budget.sheds()), (0, 0));
        accounts[2].take(1);
        assert_eq!(accounts.iter().map(is_told).collect::<Vec<_>>(), [false, true, false, false, false]);
        // What has been told to go does not count any more; it is still held.
        accounts[0].take(500);
        assert_eq!((budget.sheds(), budget.held(), budget.free()), (1, 2101, 0));
        accounts[4].take(300);
        assert_eq!(accounts.iter().map(is_told).collect::<Vec<_>>(), [false, true, false, true, false]);
        drop(accounts);
        assert_eq!((budget.held(), budget.staying(), budget.free()), (0, 0, 1600));
    }

    #[test]
    fn what_one_that_was_told_gives_back_makes_no_room_twice() {
        let budget = Budget::new(1000);
        let accounts = accounts(&budget, &[300, 800]);
        assert_eq!((is_told(&accounts[1]), budget.held(), budget.staying()), (true, 1100, 300));
        // All but the frame that HTTP/2 is writing.
        accounts[1].give(700);
        assert_eq!((budget.held(), budget.staying()), (400, 300));
        accounts[1].give(100);
        assert_eq!((budget.held(), budget.staying()), (300, 300));
        drop(accounts);
        assert_eq!((budget.held(), budget.staying()), (0, 0));
    }

    #[test]
    fn what_http2_has_is_held_until_it_lets_go() {
        let budget = Budget::new(1000);
        let account = Account::open(Arc::default(), Some(&budget));
        account.take(100);
        let mut lent = account.lend(Bytes::from(vec![7; 60]));
        let sent = lent.split_to(50);
        account.give(40);
        drop(sent);
        assert_eq!((budget.held(), account.lent()), (60, 60));
        drop(lent);
        assert_eq!((budget.held(), account.lent()), (0, 0));
        // What it has when the stream has ended is held as well.
        account.take(10);
        let lent = account.lend(Bytes::from(vec![7; 10]));
        drop(account);
        assert_eq!(budget.held(), 10);
        drop(lent);
        assert_eq!((budget.held(), budget.0.streams.lock().running.len()), (0, 0));
    }

    #[test]
    fn many_small_ones_are_looked_at_seldom() {
        let budget = Budget::new(160_000);
        let accounts = accounts(&budget, &vec![100; 1600]);
        assert_eq!(budget.sheds(), 0);
        accounts[0].take(1);
        // A sixteenth of the limit at once.
        assert_eq!(budget.sheds(), 100);
        for account in accounts.iter().filter(|account| !is_told(account)).take(90) {
            account.take(100);
        }
        assert_eq!(budget.sheds(), 100);
    }

    #[test]
    fn a_budget_of_nothing_lets_nobody_hold_anything() {
        let budget = Budget::new(0);
        let accounts = accounts(&budget, &[0, 1]);
        assert_eq!(accounts.iter().map(is_told).collect::<Vec<_>>(), [false, true]);
    }
}
