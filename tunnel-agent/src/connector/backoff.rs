//! The wait before the next attempt: exponential with full jitter, and short while an outage is
//! young.
//!
//! A restarted server is found again within one or two seconds, a thousand agents do not return at
//! the same moment, and a server that is gone is tried twice a minute.

use std::time::Duration;

use net::backoff;
use tokio::time::Instant;

/// Any wait up to the window: a thousand agents spread over all of it.
const WAITS: backoff::Backoff =
    backoff::Backoff { chance: 1.0, ..backoff::Backoff::doubling(Duration::from_millis(250), Duration::from_secs(30)) };
/// The longest window while an outage is young. For a refusal that a person must resolve, the
/// shortest window, because trying changes nothing.
const YOUNG_LONGEST: Duration = Duration::from_secs(1);
const YOUNG: Duration = Duration::from_secs(10);
/// Limit of the wait that a server may ask for.
const MOST_RETRY_AFTER: Duration = Duration::from_mins(5);

/// Failures in a row.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    since: Option<Instant>,
    until: Option<Instant>,
}

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The next attempt may succeed soon.
    Passing,
    /// A person must act first.
    Lasting,
}

// === impl Backoff ===

impl Backoff {
    /// Counts a failure and returns the wait. `at_least` is the wait that the server asked for.
    pub(super) fn failed(&mut self, kind: Kind, at_least: Option<Duration>) -> Duration {
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        let exponential = WAITS.window(self.failures);
        let window = match kind {
            Kind::Passing if now - since < YOUNG => exponential.min(YOUNG_LONGEST),
            Kind::Passing => exponential,
            Kind::Lasting => exponential.max(YOUNG_LONGEST),
        };
        self.failures = self.failures.saturating_add(1);
        let asked = at_least.unwrap_or_default().min(MOST_RETRY_AFTER);
        let wait = asked + WAITS.some_of(window);
        self.until = Some(now + wait);
        wait
    }

    /// It has worked for a while: the next failure counts as the first.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Time of the next attempt.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Whether the wait has not ended yet.
    pub(super) fn is_waiting(&self) -> bool {
        self.until.is_some_and(|until| until > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_grow_with_the_outage_and_stay_bounded() {
        let mut backoff = Backoff::default();
        let started = Instant::now();
        let mut attempts = 0;
        while started.elapsed() < YOUNG {
            let wait = backoff.failed(Kind::Passing, None);
            assert!(wait <= YOUNG_LONGEST, "{wait:?}");
            advance(wait + Duration::from_millis(1)).await;
            attempts += 1;
        }
        assert!((10..200).contains(&attempts), "{attempts}");
        let mut longest = Duration::ZERO;
        for _ in 0..200 {
            let wait = backoff.failed(Kind::Passing, None);
            assert!(wait <= WAITS.longest, "{wait:?}");
            longest = longest.max(wait);
            advance(wait).await;
        }
        assert!(longest > WAITS.longest / 2, "the jitter spreads over the whole window: {longest:?}");
        backoff.reset();
        assert!(backoff.failed(Kind::Passing, None) <= WAITS.first);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_server_asks_for_is_kept() {
        let mut backoff = Backoff::default();
        let asked = Duration::from_secs(7);
        let wait = backoff.failed(Kind::Passing, Some(asked));
        assert!(wait >= asked && backoff.is_waiting());
        advance(asked.checked_sub(Duration::from_millis(1)).unwrap()).await;
        assert!(backoff.is_waiting());
        assert!(backoff.failed(Kind::Passing, Some(Duration::MAX)) <= MOST_RETRY_AFTER + WAITS.longest);
    }
}
