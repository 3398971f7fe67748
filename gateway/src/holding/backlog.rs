//! Counts bytes of a tunnelled stream that have arrived and were not read, and those that wait to
//! be sent.
//!
//! For a direct connection the kernel holds such bytes. A tunnelled stream has its own window, up
//! to 8 MiB, and the link's driver fills it with or without a reader. Toward a peer that does not
//! read, 256 KiB of each stream wait in HTTP/2.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use net::budget::FRAME;
use parking_lot::Mutex;
use tunnel::HeldObserver;

use super::{Account, Tally};

/// The unread and unsent bytes of one stream. They count for its connection, or for the request
/// that uses it alone.
pub struct Backlog {
    connection: Account,
    /// The unread bytes, and the tally in which they count.
    counted: Mutex<(usize, Tally)>,
}

/// Bytes that count until they are dropped: those that wait to be sent, and a value of a head.
pub struct HeldBytes {
    data: Bytes,
    _tally: Tally,
}

// === impl Backlog ===

impl Backlog {
    pub fn new(connection: &Account) -> Arc<Self> {
        Arc::new(Self { connection: connection.clone(), counted: Mutex::new((0, connection.tally())) })
    }

    /// Counts for this request from now on.
    pub fn count_for(&self, request: &Account) {
        let mut tally = request.tally();
        let mut counted = self.counted.lock();
        tally.set(counted.0);
        let before = std::mem::replace(&mut counted.1, tally);
        drop(counted);
        // Not under the lock: it may be the last reference to its account.
        drop(before);
    }

    /// The request has ended.
    pub fn count_for_connection(&self) {
        self.count_for(&self.connection);
    }
}

impl HeldObserver for Backlog {
    fn unread(&self, bytes: usize) {
        let (held, tally) = &mut *self.counted.lock();
        *held = bytes;
        tally.set(bytes);
    }

    fn unsent(&self, data: Bytes) -> Bytes {
        let (tally, bytes) = (self.counted.lock().1.account().tally(), data.len() + FRAME);
        HeldBytes::counted(data, tally, bytes)
    }
}

impl fmt::Debug for Backlog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backlog").finish_non_exhaustive()
    }
}

// === impl HeldBytes ===

impl HeldBytes {
    /// The same data, which count as this many bytes for the account of `tally`.
    pub fn counted(data: Bytes, mut tally: Tally, bytes: usize) -> Bytes {
        tally.set(bytes);
        Bytes::from_owner(Self { data, _tally: tally })
    }
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}
