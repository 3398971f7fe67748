//! Resets that h2 keeps for a peer that does not read.

use std::io;
use std::task::Poll;

/// Frames that may each be owed a `RST_STREAM` while nothing goes out. h2 keeps 700 bytes for each,
/// and has one count, over the connection's lifetime: members' connections live for long and go
/// without it. An honest member answers what it was sent: a few thousand streams.
const MOST: usize = 32 * 1024;
/// The size of `RST_STREAM` (RFC 9113 §6.4).
const RESET: usize = 13;

/// What may be owed to the peer since its socket had no room.
#[derive(Default)]
pub struct Owed {
    is_blocked: bool,
    resets: usize,
}

// === impl Owed ===

impl Owed {
    /// A frame came that h2 may answer by a reset.
    pub fn add(&mut self) {
        if self.is_blocked {
            self.resets += 1;
        }
    }

    /// The stream below took so many bytes; what is owed goes out among them.
    pub fn took(&mut self, bytes: usize) {
        self.resets = self.resets.saturating_sub(bytes / RESET);
    }

    pub fn wrote(&mut self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Pending => self.is_blocked = true,
            Poll::Ready(Ok(bytes)) => self.took(*bytes),
            Poll::Ready(Err(_)) => {}
        }
    }

    pub fn flushed(&mut self, flushed: &Poll<io::Result<()>>) {
        *self = match flushed {
            Poll::Pending => Self { is_blocked: true, ..*self },
            Poll::Ready(_) => Self::default(),
        };
    }

    pub fn is_exceeded(&self) -> bool {
        self.resets > MOST
    }
}
