//! The turns of a connection: before each, its driver takes the data that readers have left.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use parking_lot::Mutex;

use super::{MOST_LEFT, SHORT, SHORT_COUNTS, Unread};

/// The streams of a connection that may have unread data.
pub struct Collector {
    /// `None` once there is no driver.
    pub(super) listed: Mutex<Option<Vec<Arc<Unread>>>>,
    /// Counts the frames of this turn, see [`MOST_LEFT`].
    left: AtomicUsize,
    /// Turns of the connection so far.
    turns: AtomicUsize,
}

/// Drives a connection, and before each turn takes the data that its readers have left.
pub struct Collecting<D> {
    pub(super) driver: D,
    pub(super) collector: Arc<Collector>,
    /// Empty between turns; its memory is reused.
    due: Vec<Arc<Unread>>,
}

// === impl Collector ===

impl Collector {
    /// A frame with this many bytes for a stream is about to go to h2.
    pub fn frame(&self, bytes: usize) {
        self.left.fetch_add(if bytes < SHORT { SHORT_COUNTS } else { bytes }, Ordering::Relaxed);
    }

    /// The number of this turn. Data passed on during a turn are not collected before its end.
    pub fn turn(&self) -> usize {
        self.turns.load(Ordering::Relaxed)
    }

    pub fn begin_turn(&self) {
        self.left.store(0, Ordering::Relaxed);
        // Only the connection's task writes.
        self.turns.store(self.turn().wrapping_add(1), Ordering::Relaxed);
    }

    pub(super) fn list(&self, unread: Arc<Unread>) {
        if let Some(listed) = &mut *self.listed.lock() {
            listed.push(unread);
        }
    }
}

impl Default for Collector {
    fn default() -> Self {
        Self { listed: Mutex::new(Some(Vec::new())), left: AtomicUsize::new(0), turns: AtomicUsize::new(0) }
    }
}

// === impl Collecting ===

impl<D> Collecting<D> {
    pub fn new(driver: D, collector: Arc<Collector>) -> Self {
        Self { driver, collector, due: Vec::new() }
    }

    /// The driver, between two turns.
    pub fn driver(&mut self) -> &mut D {
        &mut self.driver
    }
}

impl<D: Future + Unpin> Future for Collecting<D> {
    type Output = D::Output;

    /// Readers that the last turn woke have read from h2 since. Only the rest is queued.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<D::Output> {
        let this = &mut *self;
        // Not under the lock, because h2 wakes under its own.
        if let Some(listed) = &mut *this.collector.listed.lock() {
            std::mem::swap(listed, &mut this.due);
        }
        this.due.drain(..).for_each(Unread::collect);
        this.collector.begin_turn();
        let polled = Pin::new(&mut this.driver).poll(cx);
        if polled.is_pending() && this.collector.left.load(Ordering::Relaxed) > MOST_LEFT {
            // After the readers, which were woken before. Otherwise h2 would keep what they leave
            // until the connection receives more.
            cx.waker().wake_by_ref();
        }
        polled
    }
}

impl<D> Drop for Collecting<D> {
    fn drop(&mut self) {
        // The listed streams hold the collector that holds them.
        let listed = self.collector.listed.lock().take();
        drop(listed);
    }
}
