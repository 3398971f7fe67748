//! Limits how often something happens: so many times within a window, which begins with the first;
//! or once in an interval, and a few times faster.

use std::ops::{Add, Sub};
use std::time::Duration;

/// An `Instant`, or the time since any fixed moment.
pub trait Moment: Copy + PartialOrd + Add<Duration, Output = Self> + Sub<Output = Duration> {}

impl<T: Copy + PartialOrd + Add<Duration, Output = T> + Sub<Output = Duration>> Moment for T {}

/// The current window, and the count in it.
#[derive(Debug, Clone, Copy)]
pub struct Window<T> {
    since: Option<T>,
    count: u32,
}

// === impl Window ===

impl<T: Moment> Window<T> {
    /// Counts one more at `now`, if there are fewer than `most` in a window of this length.
    ///
    /// # Errors
    ///
    /// Returns the time until the next window, if there are not.
    pub fn take(&mut self, now: T, most: u32, length: Duration) -> Result<(), Duration> {
        if self.is_over(now, length) {
            *self = Self { since: Some(now), count: 0 };
        }
        if self.count < most {
            self.count += 1;
            return Ok(());
        }
        Err(self.since.map_or(length, |since| since + length - now))
    }

    /// Whether the next one begins a window.
    pub fn is_over(&self, now: T, length: Duration) -> bool {
        self.since.is_none_or(|since| now >= since + length)
    }
}

impl<T> Default for Window<T> {
    fn default() -> Self {
        Self { since: None, count: 0 }
    }
}

/// One in each interval on average.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// The interval. Above zero.
    pub each: Duration,
    /// So many may follow each other faster, after a time without any. At least one.
    pub burst: u32,
}

/// What has happened at a [`Rate`] so far, as one moment (the generic cell rate algorithm). In
/// contrast to a [`Window`], the next never waits longer than one interval if each one waits.
#[derive(Debug, Clone, Copy)]
pub struct Cells<T> {
    /// When all so far would be over, if each had waited for its turn.
    reached: Option<T>,
}

// === impl Cells ===

impl<T: Moment> Cells<T> {
    /// Time from `now` until the next may happen; zero if it may now.
    pub fn wait(&self, now: T, rate: Rate) -> Duration {
        let ahead = self.reached.filter(|reached| *reached > now).map_or(Duration::ZERO, |reached| reached - now);
        ahead.saturating_sub(rate.each * rate.burst.saturating_sub(1))
    }

    /// One happens at `now`, whether or not it has waited.
    pub fn note(&mut self, now: T, rate: Rate) {
        let begin = self.reached.filter(|reached| *reached > now).unwrap_or(now);
        self.reached = Some(begin + rate.each);
    }

    /// Notes one at `now`, if it may happen.
    ///
    /// # Errors
    ///
    /// Returns the time until it may, if it must wait.
    pub fn take(&mut self, now: T, rate: Rate) -> Result<(), Duration> {
        let wait = self.wait(now, rate);
        if !wait.is_zero() {
            return Err(wait);
        }
        self.note(now, rate);
        Ok(())
    }
}

impl<T> Default for Cells<T> {
    fn default() -> Self {
        Self { reached: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn cells_go_at_once_as_often_as_the_burst_and_then_one_by_one() {
        let (mut cells, rate) = (Cells::<Duration>::default(), Rate { each: SECOND, burst: 3 });
        let taken: Vec<_> = (0..5).map(|_| cells.take(9 * SECOND, rate)).collect();
        assert_eq!(taken, [Ok(()), Ok(()), Ok(()), Err(SECOND), Err(SECOND)], "what is refused does not count");
        assert_eq!(cells.take(10 * SECOND, rate), Ok(()));
        assert_eq!(cells.wait(10 * SECOND, rate), SECOND);
        cells.note(10 * SECOND, rate);
        assert_eq!(cells.wait(10 * SECOND, rate), 2 * SECOND, "what did not wait counts");
        assert!((0..3).all(|_| cells.take(15 * SECOND, rate).is_ok()), "after a rest there is a burst again");
        assert_eq!(cells.take(15 * SECOND, rate), Err(SECOND));
    }

    proptest::proptest! {
        /// Counts in every span between two of them, step by step.
        #[test]
        fn cells_keep_the_rate_and_wait_no_longer_than_they_must(
            pauses in proptest::collection::vec(0_u64..3000, 1..60),
            burst in 1_u32..6,
        ) {
            let (mut cells, rate) = (Cells::<Duration>::default(), Rate { each: SECOND, burst });
            let (mut now, mut taken) = (Duration::ZERO, Vec::<Duration>::new());
            for pause in pauses {
                now += Duration::from_millis(pause);
                if let Err(wait) = cells.take(now, rate) {
                    proptest::prop_assert!(wait <= SECOND);
                    now += wait;
                    proptest::prop_assert!(cells.take(now.saturating_sub(Duration::from_nanos(1)), rate).is_err());
                    proptest::prop_assert_eq!(cells.take(now, rate), Ok(()));
                }
                taken.push(now);
            }
            for (first, begin) in taken.iter().enumerate() {
                for (count, end) in (1_u32..).zip(&taken[first..]) {
                    proptest::prop_assert!(end.saturating_sub(*begin) >= SECOND * count.saturating_sub(burst));
                }
            }
        }
    }

    #[test]
    fn a_window_takes_so_many_and_the_next_as_many_again() {
        let (mut window, second) = (Window::<Duration>::default(), Duration::from_secs(1));
        assert!(window.is_over(Duration::ZERO, 10 * second), "nothing has begun");
        let taken: Vec<_> = (5..9).map(|now| window.take(now * second, 2, 10 * second)).collect();
        assert_eq!(taken, [Ok(()), Ok(()), Err(8 * second), Err(7 * second)]);
        assert!(!window.is_over(14 * second, 10 * second));
        assert_eq!(window.take(15 * second, 2, 10 * second), Ok(()), "its end belongs to the next");
        assert_eq!(Window::default().take(second, 0, second), Err(second));
    }
}
