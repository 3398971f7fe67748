//! The HTTP/1.1 connections of one pool: those that wait for a request, and the number of all.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use net::permit::Permit;
use parking_lot::Mutex;

use super::{Connection, Lease};
use crate::metrics::InFlight;

/// Most connections of one core to one member, with one request each.
pub const MAX_OPEN: usize = 1024;
/// Most connections kept for the next request.
const MAX_IDLE: usize = 64;

#[derive(Default)]
pub struct Idle {
    waiting: Mutex<Vec<Connection>>,
    open: Arc<AtomicUsize>,
}

/// Counts an open connection, against [`MAX_OPEN`] and in the metrics.
pub type ConnectionPermit = (Permit<AtomicUsize>, InFlight);

// === impl Idle ===

impl Idle {
    /// Returns the open connection that was last used, so that the others grow old and are closed.
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

    /// A permit to open one more connection, unless [`MAX_OPEN`] are open.
    pub fn permit(self: &Arc<Self>, counted: InFlight) -> Option<ConnectionPermit> {
        Permit::of(&self.open, MAX_OPEN).map(|permit| (permit, counted))
    }
}
