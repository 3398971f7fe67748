//! One holder's part of a budget: what it holds, what a library has of that, and whether it must
//! give way.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;

use super::{Budget, FRAME, Holder, Tally};

/// One holder's part of a budget, given back with its last reference. Cheap to clone.
pub struct Account<H: Holder>(pub(super) Arc<Part<H>>);

pub(super) struct Part<H: Holder> {
    pub(super) holder: H,
    /// With the shard, and its index there.
    within: Option<(Budget<H>, usize, usize)>,
    pub(super) told: AtomicBool,
    /// The held bytes that count as given back, because the holder was asked to give way.
    pub(super) leaving: AtomicU64,
    /// The held bytes that a library has and has not dropped yet.
    lent: AtomicU64,
    /// The holder's task waits until nothing is lent.
    awaited: AtomicBool,
}

/// Bytes that a library has: they are held until it drops them, sent or void.
struct ChargedBytes<H: Holder> {
    bytes: Bytes,
    /// Given back with them.
    counted: usize,
    part: Arc<Part<H>>,
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
        let counted = bytes.len();
        self.take(counted);
        self.hand_over(bytes, counted)
    }

    /// The same for bytes that are to be sent: they count with their [`FRAME`].
    pub fn charge_frame(&self, bytes: Bytes) -> Bytes {
        let counted = bytes.len() + FRAME;
        self.take(counted);
        self.hand_over(bytes, counted)
    }

    /// Lends HTTP/2 bytes that count already. From here on, their [`FRAME`] counts too.
    pub fn lend(&self, bytes: Bytes) -> Bytes {
        self.take(FRAME);
        let counted = bytes.len() + FRAME;
        self.hand_over(bytes, counted)
    }

    /// Lends bytes, which count as `counted` until they are dropped.
    fn hand_over(&self, bytes: Bytes, counted: usize) -> Bytes {
        self.0.lent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Bytes::from_owner(ChargedBytes { bytes, counted, part: Arc::clone(&self.0) })
    }

    /// Bytes that libraries have, without their [`FRAME`]s. The task that [checks](Account::check)
    /// is woken when none are left.
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

    /// See [`Counters::check`](super::Counters::check).
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

// === impl Part ===

impl<H: Holder> Part<H> {
    pub(super) fn new(holder: H, within: Option<(Budget<H>, usize, usize)>) -> Self {
        let (told, awaited) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { holder, within, told, leaving: AtomicU64::new(0), lent: AtomicU64::new(0), awaited }
    }

    pub(super) fn give(&self, bytes: u64) {
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
        self.part.give(self.counted as u64);
        if self.part.lent.fetch_sub(bytes, Ordering::SeqCst) == bytes && self.part.awaited.load(Ordering::SeqCst) {
            self.part.holder.counters().task.wake();
        }
    }
}
