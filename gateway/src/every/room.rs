//! How much all members' answers may have together, and each.
//!
//! A part is kept for each member, so that one large answer is itself the missing one and not
//! everybody else's.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::holding::Account;

/// What all answers may have together, in bytes.
pub const LARGEST: usize = 64 << 20;
/// Of that, what is divided among the members; the rest is for those that need more.
const DIVIDED: usize = LARGEST / 2;
/// What one member may have beyond its own part.
const BEYOND: usize = LARGEST / 4;
/// An answer, the room that its buffer grew by, and its part of the merged one.
const COPIES: usize = 3;

/// See the [module](self). What is taken is held for the request.
pub struct Room {
    /// For members that need more than their own part.
    left: AtomicUsize,
    /// Of each member.
    own: usize,
    taken: AtomicUsize,
    account: Account,
}

/// One member's.
pub struct Share<'a> {
    room: &'a Room,
    own: usize,
    beyond: usize,
}

// === impl Room ===

impl Room {
    /// For as many `members`.
    pub fn new(members: usize, account: &Account) -> Self {
        let own = DIVIDED / members.max(1);
        Self { left: AtomicUsize::new(LARGEST - DIVIDED), own, taken: AtomicUsize::new(0), account: account.clone() }
    }

    pub fn share(&self) -> Share<'_> {
        Share { room: self, own: self.own, beyond: BEYOND }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.account.give(COPIES * *self.taken.get_mut());
    }
}

// === impl Share ===

impl Share<'_> {
    /// Takes `bytes`, if there is as much room. They are given back with the room.
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
