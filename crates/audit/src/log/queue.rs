//! The queue between requests and the writing thread: bounded in number and in bytes, and emptied
//! one batch at a time.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::Metrics;
use crate::event::Event;

/// Most queued events. The writer may hold as many again.
pub const MOST_EVENTS: usize = 8192;
/// Most bytes of queued events: users with a thousand groups must not exhaust the memory.
pub const MOST_BYTES: usize = 64 * 1024 * 1024;

/// Events in order. Boxed, so that the lock only covers moving a pointer, and no copy.
pub type Batch = Vec<Box<Event>>;

#[derive(Debug)]
pub struct Queue {
    state: Mutex<QueuedEvents>,
    filled: Condvar,
    ended: Condvar,
    metrics: Metrics,
}

#[derive(Debug, Default)]
struct QueuedEvents {
    events: Batch,
    bytes: usize,
    closed: bool,
    ended: bool,
}

/// Marks the queue as ended on drop, even if the consumer panicked.
struct Ending<'a>(&'a Queue);

// === impl Queue ===

impl Queue {
    pub fn new(metrics: Metrics) -> Self {
        Self { state: Mutex::default(), filled: Condvar::new(), ended: Condvar::new(), metrics }
    }

    pub fn push(&self, event: Box<Event>) {
        let bytes = event.weight();
        let mut state = self.state.lock();
        if state.closed || state.events.len() >= MOST_EVENTS || state.bytes + bytes > MOST_BYTES {
            drop(state);
            self.metrics.dropped.inc();
            return;
        }
        state.bytes += bytes;
        state.events.push(event);
        let first = state.events.len() == 1;
        drop(state);
        if first {
            self.filled.notify_one();
        }
    }

    /// Passes batches to `take` until the queue is closed and empty. Clears the batch after each
    /// call.
    pub fn consume(&self, mut take: impl FnMut(&mut Batch)) {
        let _ending = Ending(self);
        let mut batch = Batch::new();
        while self.next(&mut batch) {
            take(&mut batch);
            batch.clear();
        }
    }

    /// Waits for a batch. Returns `false` if there will be no more.
    fn next(&self, batch: &mut Batch) -> bool {
        let mut state = self.state.lock();
        while state.events.is_empty() {
            if state.closed {
                return false;
            }
            self.filled.wait(&mut state);
        }
        state.bytes = 0;
        std::mem::swap(&mut state.events, batch);
        true
    }

    /// Closes the queue. Returns `true` if all events were consumed within `patience`.
    pub fn close(&self, patience: Duration) -> bool {
        let mut state = self.state.lock();
        state.closed = true;
        self.filled.notify_all();
        self.ended.wait_while_for(&mut state, |state| !state.ended, patience);
        state.ended
    }
}

// === impl Ending ===

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.closed = true;
        state.ended = true;
        self.0.ended.notify_all();
    }
}
