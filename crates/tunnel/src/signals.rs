//! Signals to a link's driver, from any thread: cheap to check each time it runs.

use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Waker;

use futures_util::task::AtomicWaker;

/// Flags that are set once, or taken by the driver.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    flags: AtomicU8,
    driver: AtomicWaker,
}

/// One flag of [`Signals`].
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub(crate) enum Signal {
    /// End now.
    Close = 1,
    /// End with the last stream.
    Drain = 2,
    /// No handle is left to open streams.
    Abandoned = 4,
    /// Send a PING.
    Probe = 8,
}

// === impl Signals ===

impl Signals {
    /// Call this before any check of the flags, so that none is missed in between.
    pub fn register(&self, driver: &Waker) {
        self.driver.register(driver);
    }

    pub fn set(&self, signal: Signal) {
        self.flags.fetch_or(signal as u8, Ordering::Release);
        self.driver.wake();
    }

    /// Wakes the driver.
    pub fn wake(&self) {
        self.driver.wake();
    }

    pub fn has(&self, signal: Signal) -> bool {
        self.flags.load(Ordering::Acquire) & signal as u8 != 0
    }

    pub fn take(&self, signal: Signal) -> bool {
        self.has(signal) && self.flags.fetch_and(!(signal as u8), Ordering::AcqRel) & signal as u8 != 0
    }
}
