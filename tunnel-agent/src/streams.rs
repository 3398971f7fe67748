//! The open streams, and the total bytes of all streams so far.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use foldhash::quality::RandomState;
use parking_lot::Mutex;
use tunnel::{Budget, Gauge};

/// All streams of the process.
#[derive(Debug)]
pub struct Streams {
    inner: Mutex<Inner>,
    /// The limit of what they hold together.
    budget: Budget,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    open: HashMap<u64, Arc<Gauge>, RandomState>,
    /// Bytes of ended streams: towards destinations, and back.
    ended: (u64, u64),
}

/// One stream's entry in the list, until dropped.
#[derive(Debug)]
pub struct Listed {
    streams: Arc<Streams>,
    number: u64,
}

// === impl Streams ===

impl Streams {
    /// `most` is the limit of the bytes that all streams hold together.
    pub fn new(most: u64) -> Self {
        Self { inner: Mutex::default(), budget: Budget::new(most) }
    }

    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    pub fn list(self: &Arc<Self>, gauge: Arc<Gauge>) -> Listed {
        let mut inner = self.inner.lock();
        let number = inner.next;
        inner.next += 1;
        inner.open.insert(number, gauge);
        Listed { streams: Arc::clone(self), number }
    }

    /// Bytes towards destinations and back, of all streams so far.
    pub fn bytes(&self) -> (u64, u64) {
        let inner = self.inner.lock();
        inner.open.values().map(|gauge| read(gauge)).fold(inner.ended, add)
    }

    #[cfg(test)]
    pub fn open(&self) -> usize {
        self.inner.lock().open.len()
    }
}

fn read(gauge: &Gauge) -> (u64, u64) {
    (gauge.forth.load(Ordering::Relaxed), gauge.back.load(Ordering::Relaxed))
}

fn add(one: (u64, u64), other: (u64, u64)) -> (u64, u64) {
    (one.0 + other.0, one.1 + other.1)
}

// === impl Listed ===

impl Drop for Listed {
    fn drop(&mut self) {
        let mut inner = self.streams.inner.lock();
        if let Some(gauge) = inner.open.remove(&self.number) {
            inner.ended = add(inner.ended, read(&gauge));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_streams_that_ended_stay_counted() {
        let (streams, gauge) = (Arc::new(Streams::new(1)), Arc::new(Gauge::default()));
        let listed = streams.list(Arc::clone(&gauge));
        gauge.forth.store(3, Ordering::Relaxed);
        gauge.back.store(4, Ordering::Relaxed);
        assert_eq!((streams.bytes(), streams.open()), ((3, 4), 1));
        drop(listed);
        assert_eq!((streams.bytes(), streams.open()), ((3, 4), 0));
    }
}
