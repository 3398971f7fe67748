//! Counts resets that h2 keeps for a peer that does not read.

use std::collections::HashSet;
use std::io;
use std::task::Poll;

/// Most frames from a member that may each be owed a `RST_STREAM` while nothing is sent. h2's own
/// count is over the connection's lifetime; members' connections last long, so they run without it.
/// An honest member responds only to requests: a few thousand streams.
const MOST: usize = 32 * 1024;
/// The size of `RST_STREAM` (RFC 9113 §6.4).
const RESET: usize = 13;
/// Bytes that h2 keeps for each: a stream.
const KEPT: usize = 700;

/// What may be owed to the peer since its socket has had no room.
pub struct Owed {
    is_blocked: bool,
    resets: usize,
    /// Streams of DATA frames that a member has sent meanwhile: h2 answers data for a forgotten
    /// stream with one reset per stream. At most [`MOST`], at which the connection ends.
    streams: HashSet<u32>,
    /// The most that h2 keeps.
    most: usize,
    /// Whether the connection ends beyond that.
    ends: bool,
}

// === impl Owed ===

impl Owed {
    pub fn to_member() -> Self {
        Self { is_blocked: false, resets: 0, streams: HashSet::new(), most: MOST, ends: true }
    }

    /// h2 itself ends the connection of a client that is owed more than `most`. This counts frames,
    /// some of which are owed nothing.
    pub fn to_client(most: usize) -> Self {
        Self { is_blocked: false, resets: 0, streams: HashSet::new(), most, ends: false }
    }

    pub fn is_to_member(&self) -> bool {
        self.ends
    }

    /// Counts a frame that h2 may answer with a reset.
    pub fn add(&mut self) {
        if self.is_blocked {
            self.resets += 1;
        }
    }

    /// Counts DATA for this stream.
    pub fn add_data(&mut self, stream: u32) {
        if self.is_blocked && (!self.ends || self.streams.insert(stream)) {
            self.resets += 1;
        }
    }

    /// Bytes that h2 may keep.
    pub fn bytes(&self) -> usize {
        self.resets.min(self.most) * KEPT
    }

    /// Counts down: the stream below has taken this many bytes, and the resets are among them.
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
        // For a member, only bytes that were taken count as sent: a flush sends at most 64 KiB, and
        // h2 may have megabytes of resets behind these. An honest member got a request for each
        // response, which is larger than a reset. A client is owed few.
        if !self.ends {
            self.resets = 0;
        }
    }

    pub fn is_exceeded(&self) -> bool {
        self.ends && self.resets > self.most
    }
}
