//! The HTTP/1.1 connections of one pool: those that wait for a request, and how many there are in all.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

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
    open: AtomicUsize,
}

/// A place among the open connections, given back when dropped.
pub struct Slot {
    idle: Weak<Idle>,
    #[allow(dead_code, reason = "held for its drop")]
    counted: InFlight,
}

// === impl Idle ===

impl Idle {
    /// The connection that was used last and is still open: the others may then grow old and be closed.
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
    pub fn slot(self: &Arc<Self>, counted: InFlight) -> Option<Slot> {
        let open = self.open.fetch_add(1, Ordering::Relaxed);
        let slot = Slot { idle: Arc::downgrade(self), counted };
        (open < MAX_OPEN).then_some(slot)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(idle) = self.idle.upgrade() {
            idle.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
