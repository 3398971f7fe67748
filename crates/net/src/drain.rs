//! Shuts down in two steps: *soft* asks all work to finish, *hard* ends the rest.
//!
//! A [`Drain`] is cheap to clone and may be observed from any runtime. Work that must be waited for
//! holds a [`DrainGuard`], taken before it is spawned, so that none is missed.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::cancellation::Cancellation;

/// The two signals and the count of running work.
#[derive(Clone, Debug, Default)]
pub struct Drain {
    soft: CancellationToken,
    hard: CancellationToken,
    running: TaskTracker,
}

/// Keeps [`Drain::finish`] waiting until it is dropped.
#[derive(Debug)]
pub struct DrainGuard(#[allow(dead_code, reason = "held for its drop")] TaskTrackerToken);

// === impl Drain ===

impl Drain {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn guard(&self) -> DrainGuard {
        DrainGuard(self.running.token())
    }

    /// Completes when work should finish: no new requests, and streams end at the next good moment.
    pub fn soft(&self) -> Cancellation {
        Cancellation::of(self.soft.clone())
    }

    /// Completes when the remaining work must end now.
    pub fn hard(&self) -> Cancellation {
        Cancellation::of(self.hard.clone())
    }

    /// The soft signal as a token.
    pub fn soft_token(&self) -> CancellationToken {
        self.soft.clone()
    }

    /// Asks all work to finish, and returns at once.
    pub fn start(&self) {
        self.soft.cancel();
        self.running.close();
    }

    /// Drains: soft now, hard after `deadline`. Returns when all work has ended, or shortly after
    /// hard. Returns whether all work ended before the deadline.
    pub async fn finish(&self, deadline: Duration) -> bool {
        /// Work that ignores the hard signal for this long is left to the end of the process.
        const AFTER_HARD: Duration = Duration::from_secs(1);
        self.start();
        let in_time = tokio::time::timeout(deadline, self.running.wait()).await.is_ok();
        self.hard.cancel();
        if !in_time {
            let _ = tokio::time::timeout(AFTER_HARD, self.running.wait()).await;
        }
        in_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn hard_comes_only_when_the_deadline_passed() {
        let drain = Drain::new();
        let guard = drain.guard();
        let observer = drain.clone();
        let started = tokio::time::Instant::now();
        let task = tokio::spawn(async move {
            observer.soft().await;
            assert_eq!(started.elapsed(), Duration::ZERO);
            observer.hard().await;
            drop(guard);
            started.elapsed()
        });
        assert!(!drain.finish(Duration::from_secs(30)).await);
        assert_eq!(task.await.unwrap(), Duration::from_secs(30));
    }

    #[tokio::test(start_paused = true)]
    async fn finishes_at_once_when_nothing_is_left() {
        let drain = Drain::new();
        drop(drain.guard());
        let started = tokio::time::Instant::now();
        assert!(drain.finish(Duration::from_secs(30)).await);
        assert_eq!(started.elapsed(), Duration::ZERO);
    }
}
