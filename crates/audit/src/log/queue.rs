//! Events between requests and the writing thread: bounded in number and in bytes, taken out a
//! whole batch at a time.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::Metrics;
use crate::event::Event;

/// Events that may wait. As many again may be in the writer's hands.
pub const MOST_EVENTS: usize = 8192;
/// Bytes they may hold together: users with a thousand groups are no way to memory.
pub const MOST_BYTES: usize = 64 * 1024 * 1024;

/// Events as they come: boxed, so that the lock is held for a pointer instead of a copy.
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

/// Says that nothing is consumed any more, however that came about.
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

    /// Hands every batch to `take` until the queue is closed and empty. A batch is left empty.
    pub fn consume(&self, mut take: impl FnMut(&mut Batch)) {
        let _ending = Ending(self);
        let mut batch = Batch::new();
        while self.next(&mut batch) {
            take(&mut batch);
            batch.clear();
        }
    }

    /// `false` when there will be none.
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

    /// Takes nothing more in; `true` if within `patience` everything was taken out and consumed.
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
