//! A slot among the works of a cluster, and its steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use net::permit::Permit;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Target;
use crate::parts::manifestworks::failure::Failure;

/// A permit to process one work, for a while.
pub struct Slot {
    pub(super) target: Arc<Target>,
    pub(super) _permit: Permit<AtomicUsize>,
    /// The end of the slot.
    pub(super) until: Instant,
    /// Whether its first step has begun.
    pub(super) has_begun: AtomicBool,
    /// Its permits among the slow clusters.
    pub(super) slow: Mutex<Option<[Permit<AtomicUsize>; 2]>>,
}

/// A step within a slot: one object, or one look-up of a kind.
pub struct Step<'a> {
    slot: &'a Slot,
    /// The first step is always completed: otherwise slots without any progress could follow each
    /// other.
    is_first: bool,
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
    /// Checks that there may be another request.
    ///
    /// # Errors
    ///
    /// Fails if its cluster is slow, and others of its works, or works of enough other slow
    /// clusters, come first; or if the slot has lasted long enough, which does not end a first
    /// step.
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
