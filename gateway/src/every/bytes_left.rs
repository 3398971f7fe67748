//! Limits the size of all members' responses together, and of each.
//!
//! A part is reserved for each member, so that a large response makes its own member missing, and
//! not all others.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::holding::{Account, Tally};
use crate::limits::HeavyPermit;

/// Most bytes of all responses together.
pub const LARGEST: usize = 64 << 20;
/// The part that is divided among the members; the rest is for those that need more.
const DIVIDED: usize = LARGEST / 2;
/// Most that one member may take beyond its own part.
const BEYOND: usize = LARGEST / 4;
/// Copies in memory: a response, the spare capacity of its buffer, and its part of the merged
/// response without marks.
const COPIES: usize = 3;

/// See the [module](self). Bytes taken count for the request.
pub struct BytesLeft {
    /// Bytes left for members that need more than their own part.
    left: AtomicUsize,
    /// Bytes reserved for each member.
    own: usize,
    taken: AtomicUsize,
    /// Bytes by which the merged response is longer than those taken.
    longer: Tally,
    account: Account,
    /// For as long as the bytes are held.
    _permit: HeavyPermit,
}

/// One member's share.
pub struct Share<'a> {
    room: &'a BytesLeft,
    own: usize,
    beyond: usize,
}

// === impl BytesLeft ===

impl BytesLeft {
    /// Divides the bytes among this many `members`.
    pub fn new(members: usize, account: &Account, permit: HeavyPermit) -> Self {
        Self {
            left: AtomicUsize::new(LARGEST - DIVIDED),
            own: DIVIDED / members.max(1),
            taken: AtomicUsize::new(0),
            longer: account.tally(),
            account: account.clone(),
            _permit: permit,
        }
    }

    /// Counts the merged response, which takes `bytes` so far.
    pub fn merged(&mut self, bytes: usize) {
        let longer = bytes.saturating_sub(*self.taken.get_mut());
        self.longer.raise(longer);
    }

    pub fn share(&self) -> Share<'_> {
        Share { room: self, own: self.own, beyond: BEYOND }
    }
}

impl Drop for BytesLeft {
    fn drop(&mut self) {
        self.account.give(COPIES * *self.taken.get_mut());
    }
}

// === impl Share ===

impl Share<'_> {
    /// Takes `bytes`, if so many are left. They are given back with the [`BytesLeft`].
    pub fn take(&mut self, bytes: usize) -> bool {
        let beyond = bytes.saturating_sub(self.own);
        let Some(rest) = self.beyond.checked_sub(beyond) else { return false };
        let fits = |left: usize| left.checked_sub(beyond);
        if self.room.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_err() {
            return false;
        }
        (self.own, self.beyond) = (self.own.saturating_sub(bytes), rest);
        self.room.taken.fetch_add(bytes, Ordering::Relaxed);
        self.room.account.take(COPIES * bytes);
        true
    }
}
