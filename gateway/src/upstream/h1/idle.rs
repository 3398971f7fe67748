//! The HTTP/1.1 connections of one pool: those that wait for a request, and how many there are in
//! all.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use net::permit::Permit;
use parking_lot::Mutex;

use super::{Connection, Lease};
use crate::metrics::InFlight;

/// Connections one core may hold to one member: one request each.
pub const MAX_OPEN: usize = 1024;
/// Connections kept for the next request.
const MAX_IDLE: usize = 64;

#[derive(Default)]
pub struct Idle {
    waiting: Mutex<Vec<Connection>>,
    open: Arc<AtomicUsize>,
}

/// Of an open connection: among those that may be, and in the metrics.
pub type ConnectionPermit = (Permit<AtomicUsize>, InFlight);

// === impl Idle ===

impl Idle {
    /// The connection that was used last and is still open: the others may then grow old and be
    /// closed.
    pub fn take(self: &Arc<Self>) -> Option<Lease> {
        // Closed ones are dropped outside the lock.
        while let Some(connection) = self.pop() {
            if !connection.is_closed() {
                return Some(Lease::new(connection, Arc::downgrade(self)));
            }
        }
        None
    }

    fn pop(&self) -> Option<Connection> {
        self.waiting.lock().pop()
    }

    pub fn put(&self, connection: Connection) {
        let mut waiting = self.waiting.lock();
        if !connection.is_closed() && waiting.len() < MAX_IDLE {
            waiting.push(connection);
        }
    }

    /// The right to open one more, unless there are [`MAX_OPEN`].
    pub fn permit(self: &Arc<Self>, counted: InFlight) -> Option<ConnectionPermit> {
        Permit::of(&self.open, MAX_OPEN).map(|permit| (permit, counted))
    }
}
