//! How many objects of a kind went lately: many at once are rather a mistake than a wish, and the
//! workloads on their clusters need not go with them.

use std::collections::VecDeque;

use register::removals::WINDOW;
use time::OffsetDateTime;

/// Of all that were there, one in so many may go within [`WINDOW`], if that is more than the limit.
const SHARE: usize = 10;

/// Removals of one kind.
#[derive(Debug, Default)]
pub struct Removals {
    /// A second since 1970 and how many went in it, the earliest first: not more than [`WINDOW`]
    /// has.
    recent: VecDeque<(i64, usize)>,
}

// === impl Removals ===

impl Removals {
    /// One more is gone, and `left` are there. True if more went within [`WINDOW`] than `limit`.
    pub fn more(&mut self, now: OffsetDateTime, left: usize, limit: usize) -> bool {
        let second = now.unix_timestamp();
        // Where the clock was set back, what comes later does not count.
        self.recent.retain(|(at, _)| *at <= second && now - WINDOW < moment(*at));
        match self.recent.back_mut() {
            Some((at, count)) if *at == second => *count = count.saturating_add(1),
            _ => self.recent.push_back((second, 1)),
        }
        let gone = self.recent.iter().fold(0_usize, |gone, (_, count)| gone.saturating_add(*count));
        gone > limit.max(left.saturating_add(gone) / SHARE)
    }
}

/// It was a moment of the clock once.
fn moment(second: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(second).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn more_than_the_limit_and_than_a_tenth_within_a_minute_are_too_many() {
        let (now, mut removals) = (OffsetDateTime::UNIX_EPOCH + Duration::from_hours(1), Removals::default());
        let mut more = |seconds: u64, left: usize| removals.more(now + Duration::from_secs(seconds), left, 3);
        assert_eq!([more(0, 9), more(0, 8), more(20, 7), more(40, 6)], [false, false, false, true]);
        // Two of them are a minute ago.
        assert!(!more(61, 5));
        assert!(more(61, 4));
        // Of many, more may go.
        assert!(!more(61, 100));
        assert!(removals.recent.len() <= 60, "{removals:?}");
    }

    #[test]
    fn a_clock_that_is_set_back_counts_anew() {
        let (now, mut removals) = (OffsetDateTime::UNIX_EPOCH + Duration::from_hours(1), Removals::default());
        assert!(!removals.more(now, 9, 1) && removals.more(now, 8, 1));
        assert!(!removals.more(now - Duration::from_mins(10), 7, 1));
    }
}
