//! Waits before retries. Each wait is longer than the one before, up to a longest one. A part of it
//! is random, so that clients that failed together do not return together.

use std::time::Duration;

use crate::random::sooner;

/// The waits for one kind of failure. The caller counts its consecutive failures.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    /// Longest wait after the first failure.
    pub first: Duration,
    pub longest: Duration,
    /// Factor by which each wait is longer than the one before.
    pub factor: f64,
    /// The random part: 0 means always the whole wait, 1 anything below it.
    pub chance: f64,
}

// === impl Backoff ===

impl Backoff {
    /// For one failing object of many. The others continue meanwhile, so it may wait long.
    pub const OBJECT: Self = Self::doubling(Duration::from_secs(1), Duration::from_mins(5));
    /// For a write that conflicted with another writer's: the next attempt reads that write.
    pub const CONFLICT: Self = Self::doubling(Duration::from_millis(200), Duration::from_secs(30));
    /// For a watch of the hub: up to half a minute, like client-go's reflectors and kube's
    /// watchers.
    pub const WATCH: Self = Self::doubling(Duration::from_secs(1), Duration::from_secs(30));
    /// For a call to the hub that a program repeats until it succeeds.
    pub const HUB: Self = Self::doubling(Duration::from_secs(1), Duration::from_mins(1));
    /// For a member that does not answer, and a watch of one: thousands may be unreachable.
    pub const MEMBER: Self = Self::doubling(Duration::from_secs(1), Duration::from_mins(1));

    /// Doubles each time, and the lower half is fixed.
    pub const fn doubling(first: Duration, longest: Duration) -> Self {
        Self { first, longest, factor: 2.0, chance: 0.5 }
    }

    /// The same each time, up to a part `chance` sooner.
    pub const fn steady(every: Duration, chance: f64) -> Self {
        Self { chance, ..Self::doubling(every, every) }
    }

    /// The longest wait after this many earlier failures.
    pub fn window(&self, failures: u32) -> Duration {
        let factor = self.factor.powi(i32::try_from(failures).unwrap_or(i32::MAX));
        let window = Duration::try_from_secs_f64(self.first.as_secs_f64() * factor);
        window.map_or(self.longest, |window| window.min(self.longest))
    }

    /// The wait after this many earlier failures.
    pub fn wait(&self, failures: u32) -> Duration {
        self.some_of(self.window(failures))
    }

    /// The fixed part of `window`, and some of the rest.
    pub fn some_of(&self, window: Duration) -> Duration {
        sooner(window, self.chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_grow_to_the_longest_and_never_beyond() {
        let backoff = Backoff::doubling(SECOND, 30 * SECOND);
        let windows: Vec<u64> =
            [0, 1, 4, 5, 31, 4000, u32::MAX].map(|failures| backoff.window(failures).as_secs()).into();
        assert_eq!(windows, [1, 2, 16, 30, 30, 30, 30]);
    }

    #[test]
    fn chance_spreads_over_its_share_and_no_more() {
        for (chance, least) in [(0.0, 1.0), (0.5, 0.5), (1.0, 0.0)] {
            let backoff = Backoff { chance, ..Backoff::doubling(SECOND, SECOND) };
            let mut waits: Vec<f64> = (0..500).map(|_| backoff.wait(0).as_secs_f64()).collect();
            waits.sort_by(f64::total_cmp);
            let (shortest, longest) = (waits[0], waits[499]);
            assert!(shortest >= least && longest <= 1.0, "{chance}: {shortest} to {longest}");
            assert!(longest - shortest >= 0.8 * chance, "{chance}: {shortest} to {longest}");
        }
    }
}
