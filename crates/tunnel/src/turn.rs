//! Limits how much h2 takes in from a link before its owners read it.
//!
//! h2 reads until nothing is left to read. Each frame or field waits there, with 250 bytes for a
//! frame of one byte and 72 for each field of a head, and h2 never gives the room for the frames
//! back: an agent that fills the line with them would cost some hundred megabytes for each of its
//! links, for the link's life.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use net::frames::{FrameHead, Passing};

/// Most frames of a turn: 250 KB in h2.
pub(crate) const FRAMES: usize = 1024;
/// Most bytes of their header blocks, where a byte may be a field: 1.2 MB in h2, until they are
/// read.
pub(crate) const HEADS: usize = 16 * 1024;

/// Counts the turns of a connection's driver. A turn is one poll, after which the tasks run that it
/// woke. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns(Arc<AtomicUsize>);

/// What was read in a turn.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Turns,
    number: usize,
    passing: Passing,
    frames: usize,
    heads: usize,
}

// === impl Turns ===

impl Turns {
    /// Called when the driver has found nothing more to do.
    pub fn end_one(&self) {
        // Only the driver writes.
        self.0.store(self.number().wrapping_add(1).max(1), Ordering::Relaxed);
    }

    fn number(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

// === impl Turn ===

impl Turn {
    /// `behind` is the number of bytes before the first frame.
    pub fn new(turns: Turns, behind: usize) -> Self {
        Self { turns, number: 0, passing: Passing::behind(behind), frames: 0, heads: 0 }
    }

    /// Call this before a read. Returns whether the turn is over: then nothing may be read before
    /// the next.
    pub fn check_over(&mut self) -> bool {
        let (number, is_full) = (self.turns.number(), self.is_full());
        // At 0 there is no driver yet to end turns: a full one refuses one read, and the next read
        // begins another. The start of the link waits only for the peer's first frames.
        let is_next = number != self.number || (number == 0 && is_full);
        if is_next {
            (self.number, self.frames, self.heads) = (number, 0, 0);
        }
        is_full && (!is_next || number == 0)
    }

    /// How many of these bytes belong to this turn.
    pub fn part(&mut self, bytes: &[u8]) -> usize {
        let Self { passing, frames, heads, .. } = self;
        passing.pass(bytes, |frame: FrameHead| {
            *frames += 1;
            *heads += if frame.is_of_a_block() { frame.length } else { 0 };
            if *frames < FRAMES && *heads < HEADS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
    }

    fn is_full(&self) -> bool {
        self.frames >= FRAMES || self.heads >= HEADS
    }
}
