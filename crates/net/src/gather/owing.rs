//! How much a peer may ask for while it does not read the answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Frames that a peer has sent while it does not read what they are answered with. A library that goes on reading keeps the answers: for
/// `RST_STREAM`, which any broken frame gets, 700 bytes each.
#[derive(Debug)]
pub struct Owing {
    /// Frames received over the connection's lifetime.
    received: Arc<AtomicUsize>,
    /// How many of them are settled: nothing of ours waits for them.
    settled: usize,
    most: usize,
    /// Bytes written that have not settled a frame yet.
    written: usize,
    /// In this turn a write was refused.
    refused: bool,
    /// In this turn nothing more was read.
    stopped: bool,
}

// === impl Owing ===

impl Owing {
    /// Few large frames are worth many small: a peer that takes a download may send as much as it likes.
    const WORTH: usize = 1024;

    pub fn new(received: Arc<AtomicUsize>, most: usize) -> Self {
        let settled = received.load(Ordering::Relaxed);
        Self { received, settled, most, written: 0, refused: false, stopped: false }
    }

    /// Whether nothing more may be read in this turn.
    pub fn stops(&mut self) -> bool {
        self.stopped |= self.received.load(Ordering::Relaxed).wrapping_sub(self.settled) >= self.most;
        self.stopped
    }

    /// The stream has taken so many bytes.
    pub fn writes(&mut self, bytes: usize) {
        self.written += bytes;
        let owed = self.received.load(Ordering::Relaxed).wrapping_sub(self.settled);
        self.settled = self.settled.wrapping_add(owed.min(self.written / Self::WORTH));
        self.written %= Self::WORTH;
    }

    /// A write was tried.
    pub fn refused(&mut self, refused: bool) {
        self.refused |= refused;
    }

    /// Whether the next turn is due at once. Where a write was refused, the room for it wakes the connection.
    pub fn ends_turn(&mut self) -> bool {
        let (refused, stopped) = (std::mem::take(&mut self.refused), std::mem::take(&mut self.stopped));
        if !refused {
            // A library that could write all it wanted keeps no answer.
            self.settled = self.received.load(Ordering::Relaxed);
        }
        stopped && !refused
    }
}
