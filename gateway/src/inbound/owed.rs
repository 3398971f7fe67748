//! Resets that h2 keeps for a peer that does not read.

use std::collections::HashSet;
use std::io;
use std::task::Poll;

/// Frames of a member that may each be owed a `RST_STREAM` while nothing goes out. h2 has one count
/// of them, over the connection's lifetime: members' connections live for long and go without it.
/// An honest member answers what it was sent: a few thousand streams.
const MOST: usize = 32 * 1024;
/// The size of `RST_STREAM` (RFC 9113 §6.4).
const RESET: usize = 13;
/// What h2 keeps for each: a stream.
const KEPT: usize = 700;

/// What may be owed to the peer since its socket had no room.
pub struct Owed {
    is_blocked: bool,
    resets: usize,
    /// Of DATA frames that came from a member meanwhile: data for a stream that h2 has forgotten is
    /// answered by a reset, once for each stream. No more than [`MOST`], with which the connection
    /// ends.
    streams: HashSet<u32>,
    /// More of them are not kept.
    most: usize,
    /// More of them end the connection.
    ends: bool,
}

// === impl Owed ===

impl Owed {
    pub fn to_member() -> Self {
        Self { is_blocked: false, resets: 0, streams: HashSet::new(), most: MOST, ends: true }
    }

    /// h2 ends the connection of a client that is owed more than `most`. What counts here are
    /// frames, some of which are owed nothing.
    pub fn to_client(most: usize) -> Self {
        Self { is_blocked: false, resets: 0, streams: HashSet::new(), most, ends: false }
    }

    pub fn is_to_member(&self) -> bool {
        self.ends
    }

    /// A frame came that h2 may answer by a reset.
    pub fn add(&mut self) {
        if self.is_blocked {
            self.resets += 1;
        }
    }

    /// DATA came for this stream.
    pub fn add_data(&mut self, stream: u32) {
        if self.is_blocked && (!self.ends || self.streams.insert(stream)) {
            self.resets += 1;
        }
    }

    /// Bytes that h2 may keep.
    pub fn bytes(&self) -> usize {
        self.resets.min(self.most) * KEPT
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
        self.is_blocked = flushed.is_pending();
        if self.is_blocked {
            return;
        }
        self.streams = HashSet::new();
        // Towards a member only what was taken counts as sent: no more than 64 KiB goes out with a
        // flush, and h2 may have megabytes of resets behind it. An honest member was sent a request
        // for each answer, which is more than a reset. A client's are few.
        if !self.ends {
            self.resets = 0;
        }
    }

    pub fn is_exceeded(&self) -> bool {
        self.ends && self.resets > self.most
    }
}
