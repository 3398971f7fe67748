//! Runs of a plugin, and the pauses between those that failed.

use std::sync::Arc;
use std::time::Duration;

use net::backoff::Backoff;
use net::flight::{Flight, FlightWaiter};
use tokio::time::Instant;

use super::Outcome;
use crate::credential::Issued;
use crate::error::ExecError;

/// How long a failed plugin is paused. Without jitter, because each run is a process.
pub(super) const PAUSES: Backoff =
    Backoff { chance: 0.0, ..Backoff::doubling(Duration::from_secs(1), Duration::from_secs(30)) };
/// A credential that worked this long before it was rejected was good.
const PROVEN: Duration = Duration::from_mins(1);

#[derive(Default)]
pub(super) struct Runs {
    /// The run in progress.
    pub(super) flight: Option<Flight<Outcome>>,
    /// The last run's failure, and when the next run may begin.
    pub(super) failure: Option<(Arc<ExecError>, Instant)>,
    /// Consecutive failed runs.
    pub(super) failures: u32,
    /// Whether a first try was too short, with no result since.
    pub(super) slow: bool,
    /// Consecutive renewals because a credential was rejected soon after it was issued.
    pub(super) rejections: u32,
}

// === impl Runs ===

impl Runs {
    /// The run in progress.
    pub(super) fn flight(&self) -> Option<FlightWaiter<Outcome>> {
        self.flight.as_ref().and_then(Flight::waiter)
    }

    /// The failure for which the plugin is paused.
    pub(super) fn failed(&self) -> Option<Arc<ExecError>> {
        self.failure.as_ref().filter(|(_, until)| Instant::now() < *until).map(|(error, _)| Arc::clone(error))
    }

    /// Whether the rejection of a credential comes too soon to run the plugin again. Resets the
    /// count if the credential has proven good. The first rejection counts at once, because the
    /// plugin may have returned an old credential. A member that rejects every credential must not
    /// cause a run for each request.
    pub(super) fn reject_early(&mut self, rejected: &Issued) -> bool {
        if rejected.age() >= PROVEN {
            self.rejections = 0;
        }
        self.rejections.checked_sub(1).is_some_and(|times| rejected.age() < PAUSES.window(times))
    }
}
