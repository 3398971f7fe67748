//! Which objects of a kind went lately, of those whose end takes a decided cluster away: many at
//! once are rather a mistake than a wish, and the workloads on their clusters need not go with
//! them.

use std::collections::HashMap;
use std::time::Duration;

use register::removals::{HELD, WINDOW};
use time::OffsetDateTime;

/// Of all that were there, one in so many may go within [`WINDOW`], if that is more than the limit.
const SHARE: usize = 10;
/// So many may go, though they are more than half of all.
const FEW: usize = 2;
/// A limit above this, the default, is somebody's word that so many may go, whatever is left.
const USUAL: usize = 20;
/// For so long it is known what went: whoever went first of a crowd is known until its hold ends.
const KNOWN: Duration = HELD.saturating_add(WINDOW);
/// Names that are known. Beyond, there are too many in any case.
const MOST: usize = 10_000;

/// Removals of one kind.
#[derive(Debug, Default)]
pub struct Removals {
    /// When each went, by name: one that goes again and again is one.
    gone: HashMap<String, OffsetDateTime>,
}

// === impl Removals ===

impl Removals {
    /// This one is gone, and `left` are there. True if more went within [`WINDOW`] than may: than
    /// `limit` and a tenth, or than half.
    pub fn more(&mut self, name: &str, now: OffsetDateTime, left: usize, limit: usize) -> bool {
        if self.gone.len() >= MOST {
            self.forget(now);
        }
        if self.gone.len() < MOST {
            self.gone.entry(name.to_owned()).or_insert(now);
        }
        let gone = self.gone.values().filter(|at| is_within(**at, now, WINDOW)).count();
        let are_most = limit <= USUAL && gone > left.max(FEW);
        are_most || gone > limit.max(left.saturating_add(gone) / SHARE) || self.gone.len() >= MOST
    }

    /// Forgets what nobody asks for any more. True if nothing is left.
    pub fn forget(&mut self, now: OffsetDateTime) -> bool {
        self.gone.retain(|_, at| is_within(*at, now, KNOWN));
        self.gone.is_empty()
    }

    /// It is there again.
    pub fn came_back(&mut self, name: &str) {
        self.gone.remove(name);
    }

    /// Those that went and did not come back.
    pub fn has(&self, name: &str, now: OffsetDateTime) -> bool {
        self.gone.get(name).is_some_and(|at| is_within(*at, now, KNOWN))
    }
}

/// Where the clock was set back, what comes later does not count.
fn is_within(at: OffsetDateTime, now: OffsetDateTime, span: Duration) -> bool {
    at <= now && now - span < at
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    #[test]
    fn more_than_the_limit_and_than_a_tenth_within_a_minute_are_too_many() {
        let mut removals = Removals::default();
        let mut more =
            |seconds: u64, name: &str, left| removals.more(name, NOW + Duration::from_secs(seconds), left, 3);
        assert_eq!([more(0, "a", 9), more(0, "b", 8), more(20, "c", 7)], [false; 3]);
        assert!(!more(30, "c", 7), "the same again");
        assert!(more(40, "d", 6));
        // Two of them are a minute ago.
        assert!(!more(61, "e", 5));
        assert!(more(61, "f", 4));
        // Of many, more may go.
        assert!(!more(61, "g", 100));
    }

    #[test]
    fn of_a_small_fleet_more_than_half_are_too_many_but_never_two() {
        let mut removals = Removals::default();
        assert!(!removals.more("a", NOW, 4, 20) && !removals.more("b", NOW, 3, 20));
        assert!(removals.more("c", NOW, 2, 20) && !removals.more("c", NOW, 2, 21));
        let mut removals = Removals::default();
        assert!(!removals.more("a", NOW, 1, 20) && !removals.more("b", NOW, 0, 20));
    }

    #[test]
    fn what_went_is_known_as_long_as_a_hold_may_last() {
        let mut removals = Removals::default();
        assert!(!removals.more("a", NOW, 9, 3) && removals.has("a", NOW + HELD));
        assert!(!removals.has("a", NOW - Duration::from_secs(1)), "the clock was set back");
        assert!(removals.forget(NOW + KNOWN));
        assert!(!removals.has("a", NOW));
    }
}
