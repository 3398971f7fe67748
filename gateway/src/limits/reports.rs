//! Limits concurrent reports of health: a report is read as a whole, and so is the Secret that it
//! changes.

use std::sync::Arc;
use std::time::Duration;

use api::access::Verb;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::hub::{Cause, Collection, HubFailure};

/// Most concurrent writes of reports. Each takes two short calls to the hub, and memory for a few
/// copies of a Secret.
const WRITERS: usize = 8;
/// Wait for a permit. After it the report is refused: the hub is slow, or there are many reports.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most bodies longer than [`SHORT`] that are read at a time.
const LONG_BODIES: usize = 4;
/// Longest body that is not counted, in bytes: HTTP/2 buffers more than that even for an upload
/// that is not read.
pub const SHORT: usize = 64 << 10;

/// Permits for reports of health.
#[derive(Debug)]
pub struct Permits {
    writers: Semaphore,
    long_bodies: Arc<Semaphore>,
    /// Counts refused reports.
    rejected: Counter,
}

// === impl Permits ===

impl Permits {
    /// Counts refusals in `rejected`.
    pub fn new(rejected: Counter) -> Self {
        Self { writers: Semaphore::new(WRITERS), long_bodies: Arc::new(Semaphore::new(LONG_BODIES)), rejected }
    }

    /// For a whole report, from its parsing to its response. Waits for a short time, then refuses.
    pub async fn writer(&self) -> Result<SemaphorePermit<'_>, HubFailure> {
        timeout(PATIENCE, self.writers.acquire()).await.ok().and_then(Result::ok).ok_or_else(|| self.busy())
    }

    /// For a body that turns out to be long. Refuses at once: a client that sends slowly must not
    /// make others wait.
    pub fn long_body(&self) -> Result<OwnedSemaphorePermit, HubFailure> {
        Arc::clone(&self.long_bodies).try_acquire_owned().map_err(|_| self.busy())
    }

    /// As if the hub were busy, because the limit protects the hub.
    fn busy(&self) -> HubFailure {
        self.rejected.inc();
        HubFailure { verb: Verb::Update, collection: Collection::Secrets, cause: Cause::Busy }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    fn is_refused<T>(outcome: Result<T, HubFailure>) -> bool {
        outcome.is_err_and(|failure| matches!(failure, HubFailure { verb: Verb::Update, cause: Cause::Busy, .. }))
    }

    #[tokio::test(start_paused = true)]
    async fn a_report_waits_a_little_for_a_permit() {
        let rejected = Counter::default();
        let permits = Permits::new(rejected.clone());
        let mut taken = Vec::new();
        for _ in 0..WRITERS {
            taken.push(permits.writer().await);
        }
        assert!(taken.iter().all(Result::is_ok));
        let started = Instant::now();
        assert!(is_refused(permits.writer().await));
        assert_eq!((started.elapsed(), rejected.get()), (PATIENCE, 1));
        taken.pop();
        assert!(permits.writer().await.is_ok());
    }

    #[tokio::test]
    async fn long_bodies_are_few_and_do_not_wait() {
        let permits = Permits::new(Counter::default());
        let taken: Vec<_> = (0..LONG_BODIES).map(|_| permits.long_body()).collect();
        assert!(taken.iter().all(Result::is_ok));
        assert!(is_refused(permits.long_body()));
        drop(taken);
        assert!(permits.long_body().is_ok());
    }
}
