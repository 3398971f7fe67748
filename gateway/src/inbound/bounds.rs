//! What a connection holds and owes, and when it must end for that.

use std::io;
use std::task::Poll;

use bytes::BytesMut;
use net::costly::TOO_MANY;

use super::owed::Owed;
use super::{Inbound, PINNED_BY_MEMBER};

impl<T> Inbound<T> {
    /// Counts what is held.
    pub(super) fn tally(&mut self) {
        if let Some(tally) = &mut self.tally {
            let owed = self.owed.as_ref().map_or(0, Owed::bytes);
            self.slots = tally.account().holder().slots_bytes();
            tally.set(self.held.capacity() + self.ready.capacity() + owed + self.turn.bytes() + self.slots);
        }
    }

    /// Whether more pieces wait to be sent than ever before.
    pub(super) fn has_more_slots(&self) -> bool {
        self.tally.as_ref().is_some_and(|tally| tally.account().holder().slots_bytes() != self.slots)
    }

    /// For bytes that pass unchanged: counts again if h2 takes more, or if something is owed.
    pub(super) fn tally_passed(&mut self, before: usize) {
        if self.turn.bytes() != before || self.owed.as_ref().is_some_and(|owed| owed.bytes() > 0) {
            self.tally();
        }
    }

    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.costly.is_exceeded() {
            return Err(TOO_MANY);
        }
        if let Some(why) = self.broken {
            return Err(why);
        }
        if self.is_of_member() && self.marks.pinned() > PINNED_BY_MEMBER {
            return Err("too many pseudo-headers behind headers");
        }
        if self.owed.as_ref().is_some_and(Owed::is_exceeded) {
            return Err("it sends frames that are answered with resets, and does not read these");
        }
        Ok(())
    }

    /// Ends the connection, or has the server end it.
    pub(super) fn end(&mut self, why: &'static str) -> Poll<io::Result<()>> {
        if !self.ends_with_goodbye {
            return Poll::Ready(Err(io::Error::other(why)));
        }
        (self.held, self.ready) = (BytesMut::new(), BytesMut::new());
        self.tally();
        self.marks.refuse(why);
        Poll::Pending
    }

    /// Runs before h2 gets the bytes just counted: its task would notice its end only after that.
    pub(super) fn check_room(&self) -> io::Result<()> {
        if self.tally.as_ref().is_some_and(|tally| tally.account().is_ended()) {
            // Another kind than the errors of [`Self::check`], because those count elsewhere.
            let why = "the gateway had no room left, and it has the most";
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, why));
        }
        Ok(())
    }

    /// Changes what is owed, and counts again.
    pub(super) fn changed(&mut self, change: impl FnOnce(&mut Owed)) {
        let Some(owed) = &mut self.owed else { return };
        let before = owed.bytes();
        change(owed);
        if before > 0 {
            self.tally();
        }
    }

    pub(super) fn wrote(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.changed(|owed| owed.wrote(&written));
        written
    }
}
