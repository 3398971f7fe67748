//! Limits how much h2 takes in from a link before its owners read it.
//!
//! h2 reads until nothing is left to read. Each frame or field waits there, with 250 bytes for a
//! frame of one byte and 72 for each field of a head, and h2 never gives the room for the frames
//! back: an agent that fills the line with them would cost some hundred megabytes for each of its
//! links, for the link's life.
//!
//! h2 walks through all streams for each SETTINGS and GOAWAY. A turn has few of them, because other
//! links wait meanwhile, and a peer that sends very many loses its link.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use net::costly::{Costly, TOO_MANY, is_costly};
use net::frames::{FrameHead, Passing};

/// Most frames of a turn: 250 KB in h2.
pub(crate) const FRAMES: usize = 1024;
/// Most bytes of their header blocks, where a byte may be a field: 1.2 MB in h2, until they are
/// read.
pub(crate) const HEADS: usize = 16 * 1024;
/// Most SETTINGS and GOAWAY of a turn: 8 ms for twenty thousand streams.
pub(crate) const COSTLY: usize = 32;
/// Kind of the error that ends the link of a peer that sends too many of them; h2 passes on nothing
/// else of it but its text. Sockets have no errors of this kind.
pub(crate) const FLOOD: io::ErrorKind = io::ErrorKind::QuotaExceeded;

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
    /// Counts SETTINGS and GOAWAY, of all turns.
    costly: Costly,
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
        Self { turns, number: 0, passing: Passing::behind(behind), frames: 0, heads: 0, costly: Costly::default() }
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

    /// Fails if the link must end, because its peer sends too many expensive frames. Call this
    /// before a read, too.
    pub fn check_flood(&self) -> io::Result<()> {
        if self.costly.is_exceeded() { Err(io::Error::new(FLOOD, TOO_MANY)) } else { Ok(()) }
    }

    /// How many of these bytes belong to this turn.
    pub fn part(&mut self, bytes: &[u8]) -> usize {
        let Self { passing, frames, heads, costly, .. } = self;
        passing.pass(bytes, |frame: FrameHead| {
            if is_costly(frame.kind, frame.flags) {
                costly.take();
                *frames += FRAMES / COSTLY;
            } else {
                *frames += 1;
            }
            *heads += if frame.is_of_a_block() { frame.length } else { 0 };
            let goes_on = *frames < FRAMES && *heads < HEADS && !costly.is_exceeded();
            if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
    }

    fn is_full(&self) -> bool {
        self.frames >= FRAMES || self.heads >= HEADS
    }
}
