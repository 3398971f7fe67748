//! Wall-clock time for the validity of certificates, from one source that tests can set.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls_pki_types::UnixTime;

/// The source of the current time.
#[derive(Debug, Clone, Default)]
pub(crate) enum Clock {
    #[default]
    System,
    #[cfg(test)]
    Fixed(std::sync::Arc<std::sync::atomic::AtomicU64>),
}

/// A span of wall-clock time, including both ends, in seconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from: u64,
    pub(crate) until: u64,
}

// === impl Clock ===

impl Clock {
    /// Seconds since the Unix epoch. 0 if the machine's clock is before it, so that no certificate
    /// is valid.
    pub(crate) fn now(&self) -> u64 {
        match self {
            Self::System => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            #[cfg(test)]
            Self::Fixed(seconds) => seconds.load(std::sync::atomic::Ordering::SeqCst),
        }
    }
}

/// `seconds` since the Unix epoch, as webpki's type.
pub(crate) fn unix_time(seconds: u64) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(seconds))
}

// === impl Window ===

impl Window {
    pub(crate) fn contains(self, now: u64) -> bool {
        self.from <= now && now <= self.until
    }

    pub(crate) fn intersection(self, other: Self) -> Self {
        Self { from: self.from.max(other.from), until: self.until.min(other.until) }
    }
}
