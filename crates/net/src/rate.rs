//! Limits how often something happens: so many times within a window, which begins with the first.

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

#[cfg(test)]
mod tests {
    use super::*;

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
