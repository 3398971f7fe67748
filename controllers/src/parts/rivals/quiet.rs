//! How long the work waits after rivals that come and go.

use std::time::Duration;

use net::backoff::Backoff;
use tokio::time::Instant;

/// After a rival is gone, until the work begins: the longer, the more often one came lately.
/// Otherwise a Lease that comes and goes would have everything listed each time.
const QUIET: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_mins(5));
/// A rival this long ago does not count any more.
const LATELY: Duration = Duration::from_mins(30);

/// Since when there is no rival, and how often one came.
#[derive(Debug)]
pub struct Quiet {
    /// Until then the work does not begin.
    pub until: Instant,
    times: u32,
    last: Option<Instant>,
    is_there: bool,
}

// === impl Quiet ===

impl Default for Quiet {
    fn default() -> Self {
        Self { until: Instant::now(), times: 0, last: None, is_there: false }
    }
}

impl Quiet {
    pub fn came(&mut self) {
        if std::mem::replace(&mut self.is_there, true) {
            return;
        }
        let is_lately = self.last.is_some_and(|last| last.elapsed() < LATELY);
        self.times = if is_lately { self.times.saturating_add(1) } else { 1 };
        self.last = Some(Instant::now());
    }

    /// What is known has changed: no rival is there from now on, or one is.
    pub fn began(&mut self, is_alone: bool) {
        if is_alone {
            self.is_there = false;
            let wait = self.times.checked_sub(1).map_or(Duration::ZERO, |before| QUIET.wait(before));
            self.until = Instant::now() + wait;
        }
    }
}
