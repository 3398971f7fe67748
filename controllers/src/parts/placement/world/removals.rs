//! Recent removals of one kind, of objects whose removal takes a decided cluster away. Many
//! removals at once are more likely a mistake than intended, and workloads should not leave their
//! clusters because of it.

use std::collections::HashMap;
use std::time::Duration;

use register::removals::{HELD, WINDOW};
use time::OffsetDateTime;

/// One in this many of all objects may go within [`WINDOW`], if that is more than the limit.
const SHARE: usize = 10;
/// This many may go even if they are more than half of all.
const FEW: usize = 2;
/// The default limit. A higher limit says that so many may go, whatever is left: then the rule
/// about half does not apply.
const USUAL: usize = 20;
/// How long removals are remembered: the first of many until the hold that they caused ends.
const KNOWN: Duration = HELD.saturating_add(WINDOW);
/// Most names that are remembered. More removals are too many under any limit.
const MOST: usize = 10_000;

/// Removals of one kind.
#[derive(Debug, Default)]
pub struct Removals {
    /// Time of each removal by name, so that an object that goes repeatedly counts once.
    gone: HashMap<String, OffsetDateTime>,
}

// === impl Removals ===

impl Removals {
    /// Counts the removal of `name` with `left` objects remaining. True if the removals within
    /// [`WINDOW`] are too many: more than `limit` and more than a tenth, or more than half.
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

    /// Forgets removals that no longer matter. True if none is left.
    pub fn forget(&mut self, now: OffsetDateTime) -> bool {
        self.gone.retain(|_, at| is_within(*at, now, KNOWN));
        self.gone.is_empty()
    }

    /// Forgets the removal of an object that exists again.
    pub fn came_back(&mut self, name: &str) {
        self.gone.remove(name);
    }

    /// Whether an object was removed recently and has not come back.
    pub fn has(&self, name: &str, now: OffsetDateTime) -> bool {
        self.gone.get(name).is_some_and(|at| is_within(*at, now, KNOWN))
    }
}

/// After the clock was set back, times in the future do not count.
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
        // Two of them are more than a minute old.
        assert!(!more(61, "e", 5));
        assert!(more(61, "f", 4));
        // With many objects left, more may go.
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
