//! When a link last received something, and what its PINGs measured. Its driver writes it, any
//! thread reads it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use net::observed::ActivityObserver;
use tokio::time::Instant;

use crate::signals::{Signal, Signals};

/// Shared by a link's driver, its socket and its handles. Times are milliseconds since its
/// creation.
#[derive(Debug)]
pub(crate) struct Activity {
    start: Instant,
    last_read: AtomicU64,
    last_write: AtomicU64,
    bytes: AtomicU64,
    /// Microseconds; `u64::MAX` if unknown.
    rtt: AtomicU64,
    /// Value of `last_read`, plus one, at which an open went unanswered; 0 for none.
    suspect: AtomicU64,
    pub signals: Signals,
}

/// Records what the socket does.
#[derive(Debug, Clone)]
pub(crate) struct ActivityRecorder(pub Arc<Activity>);

// === impl Activity ===

impl Activity {
    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn at(&self, millis: u64) -> Instant {
        self.start + Duration::from_millis(millis)
    }

    pub fn last_read(&self) -> Instant {
        self.at(self.last_read.load(Ordering::Relaxed))
    }

    pub fn last_write(&self) -> Instant {
        self.at(self.last_write.load(Ordering::Relaxed))
    }

    /// Counts silence from now on: for the start of a connection.
    pub fn reset(&self) {
        self.last_read.store(self.now(), Ordering::Relaxed);
        self.last_write.store(self.now(), Ordering::Relaxed);
    }

    pub fn silence(&self) -> Duration {
        self.last_read().elapsed()
    }

    /// Bytes received since the start.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn rtt(&self) -> Option<Duration> {
        let micros = self.rtt.load(Ordering::Relaxed);
        (micros != u64::MAX).then(|| Duration::from_micros(micros))
    }

    pub fn set_rtt(&self, rtt: Duration) {
        self.rtt.store(u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX - 1), Ordering::Relaxed);
    }

    /// Reports that an open sent at `sent` has had no answer. If nothing was received since, the
    /// link is suspect until something is.
    pub fn unanswered(&self, sent: Instant) {
        let last_read = self.last_read.load(Ordering::Relaxed);
        if self.at(last_read) <= sent {
            self.suspect.store(last_read + 1, Ordering::Relaxed);
            self.signals.set(Signal::Probe);
        }
    }

    pub fn is_suspect(&self) -> bool {
        self.suspect.load(Ordering::Relaxed) == self.last_read.load(Ordering::Relaxed) + 1
    }
}

impl Default for Activity {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            last_read: AtomicU64::new(0),
            last_write: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            rtt: AtomicU64::new(u64::MAX),
            suspect: AtomicU64::new(0),
            signals: Signals::default(),
        }
    }
}

// === impl ActivityRecorder ===

impl ActivityObserver for ActivityRecorder {
    fn on_read(&mut self, bytes: &[u8]) {
        self.0.last_read.store(self.0.now(), Ordering::Relaxed);
        self.0.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    }

    fn on_write(&self, _: usize) {
        self.0.last_write.store(self.0.now(), Ordering::Relaxed);
    }
}
