//! How much of a link HTTP/2 takes in before its owners read it.
//!
//! h2 reads until nothing is left to read. Each frame or field waits there, 250 bytes for a frame
//! of one, 72 for each field of a head, and it never gives the room for the frames back: an agent
//! that fills the line with them would have some hundred megabytes of each of its links, for life.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use net::frames::{FrameHead, Passing};

/// Frames of a turn. 250 KB in h2.
pub(crate) const FRAMES: usize = 1024;
/// Bytes of their header blocks, where a byte may be a field. 1.2 MB in h2, until they are read.
pub(crate) const HEADS: usize = 16 * 1024;

/// Turns of a connection's driver, which counts them: one poll, after which the tasks run that it
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
    /// The driver has found nothing more to do.
    pub fn end_one(&self) {
        // It alone writes.
        self.0.store(self.number().wrapping_add(1).max(1), Ordering::Relaxed);
    }

    fn number(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

// === impl Turn ===

impl Turn {
    /// The first frame begins behind so many bytes.
    pub fn new(turns: Turns, behind: usize) -> Self {
        Self { turns, number: 0, passing: Passing::behind(behind), frames: 0, heads: 0 }
    }

    /// To be called before a read: whether there is to be none.
    pub fn check_over(&mut self) -> bool {
        let (number, is_full) = (self.turns.number(), self.is_full());
        // Before there is a driver, the start of the link waits for the peer's first frames alone.
        let is_next = number != self.number || (number == 0 && is_full);
        if is_next {
            (self.number, self.frames, self.heads) = (number, 0, 0);
        }
        is_full && (!is_next || number == 0)
    }

    /// How many of these bytes are for this turn.
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
