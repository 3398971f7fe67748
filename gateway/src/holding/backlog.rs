//! What has come through the tunnel for a stream and was not read.
//!
//! Of a direct connection the kernel has that. A stream of the tunnel has a window of its own, up
//! to 8 MiB, and the link's driver fills it with or without a reader.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tunnel::UnreadObserver;

use super::{Account, Tally};

/// Of one stream. Counts for its connection, or for a request that has the connection to itself.
pub struct Backlog {
    connection: Account,
    /// The bytes, and the user that they count for.
    counted: Mutex<(usize, Tally)>,
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
        // Not under the lock: it may be the last of its account.
        drop(before);
    }

    /// The request is over.
    pub fn count_for_connection(&self) {
        self.count_for(&self.connection);
    }
}

impl UnreadObserver for Backlog {
    fn unread(&self, bytes: usize) {
        let (held, tally) = &mut *self.counted.lock();
        *held = bytes;
        tally.set(bytes);
    }
}

impl fmt::Debug for Backlog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backlog").finish_non_exhaustive()
    }
}
