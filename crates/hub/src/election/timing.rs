//! How long leadership lasts without a response from the hub, and how often we renew.

use std::time::Duration;

use net::random::fraction;

/// The largest random part of a retry period is one in this many, so that replicas that started
/// together do not send together.
const JITTER: u32 = 5;

/// The three times of an election, with the names of client-go's `LeaderElectionConfig`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    lease: Duration,
    renew: Duration,
    retry: Duration,
}

/// Times under which two could lead, or none for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TimingError {
    #[error("the lease duration must be whole seconds, at least one")]
    NotSeconds,
    #[error("the retry period must not be zero, and the renew deadline must be longer than 1.2 retry periods")]
    NoRetry,
    #[error("the lease duration must be longer than the renew deadline and a retry period together")]
    NoMargin,
}

// === impl Timing ===

impl Timing {
    /// `lease`: how long others wait after the last change they saw. `renew`: the longest time for
    /// one renewal. `retry`: the time between two tries.
    ///
    /// # Errors
    /// client-go requires `lease > renew > 1.2 × retry` (`NewLeaderElector`). Its leader may still
    /// lead after the lease has passed, if its API server is slow. Ours must have stopped by then,
    /// so the first condition is `lease > renew + retry` ([`Timing::term`]).
    pub fn new(lease: Duration, renew: Duration, retry: Duration) -> Result<Self, TimingError> {
        if lease.is_zero() || lease.subsec_nanos() != 0 || i32::try_from(lease.as_secs()).is_err() {
            return Err(TimingError::NotSeconds);
        }
        if retry.is_zero() || renew <= retry.saturating_add(retry / JITTER) {
            return Err(TimingError::NoRetry);
        }
        if lease <= renew.saturating_add(retry) {
            return Err(TimingError::NoMargin);
        }
        Ok(Self { lease, renew, retry })
    }

    /// How long others wait after the last change they saw.
    pub fn lease(&self) -> Duration {
        self.lease
    }

    /// The lease duration as the Lease contains it.
    pub(super) fn lease_seconds(&self) -> i32 {
        i32::try_from(self.lease.as_secs()).unwrap_or(i32::MAX)
    }

    /// The longest wait for one response of the hub.
    pub(super) fn renew(&self) -> Duration {
        self.renew
    }

    /// Time between two renewals.
    pub(super) fn retry(&self) -> Duration {
        self.retry
    }

    /// Time until the next try of a contender that does not lead.
    pub(super) fn pause(&self) -> Duration {
        self.retry + (self.retry / JITTER).mul_f64(fraction())
    }

    /// A watch without a renewal for this long is not trusted.
    pub(super) fn silence(&self) -> Duration {
        2 * self.pause()
    }

    /// How long a write proves leadership, from when it was *sent*: the next renewal begins one
    /// retry period later, and has the renew deadline to succeed. Others start one lease duration
    /// after they saw the write, hence after it was sent. The time in between is the margin for
    /// clocks of different speeds, and for the leader's calls in flight.
    pub(super) fn term(&self) -> Duration {
        self.retry + self.renew
    }
}

impl Default for Timing {
    /// 15 s, 10 s and 2 s, as in every core component.
    fn default() -> Self {
        Self { lease: Duration::from_secs(15), renew: Duration::from_secs(10), retry: Duration::from_secs(2) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_with_which_two_could_lead_are_refused() {
        let of = |lease: f64, renew: f64, retry: f64| {
            let [lease, renew, retry] = [lease, renew, retry].map(Duration::from_secs_f64);
            Timing::new(lease, renew, retry)
        };
        assert_eq!(of(15.0, 10.0, 2.0), Ok(Timing::default()));
        assert_eq!(of(15.0, 13.0, 2.0), Err(TimingError::NoMargin));
        assert_eq!(of(15.0, 2.4, 2.0), Err(TimingError::NoRetry));
        assert_eq!(of(15.0, 10.0, 0.0), Err(TimingError::NoRetry));
        assert_eq!(of(0.0, 10.0, 2.0), Err(TimingError::NotSeconds));
        assert_eq!(of(15.5, 10.0, 2.0), Err(TimingError::NotSeconds));
        assert_eq!(of(1e10, 10.0, 2.0), Err(TimingError::NotSeconds));
    }

    #[test]
    fn pauses_are_a_retry_period_and_up_to_a_fifth_of_it() {
        let pauses: Vec<f64> = (0..500).map(|_| Timing::default().pause().as_secs_f64()).collect();
        assert!(pauses.iter().all(|pause| (2.0..=2.4).contains(pause)), "{pauses:?}");
        assert!(pauses.iter().any(|pause| *pause > 2.3) && pauses.iter().any(|pause| *pause < 2.1), "{pauses:?}");
    }
}
