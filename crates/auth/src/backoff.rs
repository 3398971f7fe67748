//! Delays between attempts: exponential, capped, with jitter.

use std::time::Duration;

use net::random::fraction;

/// Iterator of delays. Each is longer than the one before by `factor`, up to `cap`, plus up to `jitter` of itself.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    next: Duration,
    factor: f64,
    cap: Duration,
    jitter: f64,
}

// === impl Backoff ===

impl Backoff {
    /// For reviews: 500 ms, ×1.5, jitter 0.2 (`DefaultAuthWebhookRetryBackoff` in
    /// `k8s.io/apiserver/pkg/server/options/authentication.go`).
    pub(crate) fn for_reviews() -> Self {
        Self { next: Duration::from_millis(500), factor: 1.5, cap: Duration::from_secs(5), jitter: 0.2 }
    }
}

impl Iterator for Backoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let delay = self.next;
        self.next = delay.mul_f64(self.factor).min(self.cap);
        Some(delay.mul_f64(1.0 + self.jitter * fraction()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_the_cap_and_stay_within_the_jitter() {
        let delays: Vec<f64> = Backoff::for_reviews().take(20).map(|delay| delay.as_secs_f64()).collect();
        assert!((0.5..0.6).contains(&delays[0]), "{delays:?}");
        assert!((0.75..0.9).contains(&delays[1]), "{delays:?}");
        assert!((5.0..6.0).contains(&delays[19]), "{delays:?}");
    }
}
