//! When the end of an object ends its cluster's registration.
//!
//! An object that is merely not listed may come back: its list was cut, its kind is being replaced,
//! or this program now uses another hub. Many deletions at once are more likely a mistake than
//! intended. The caller passes observations and their times; nothing here reads a clock.

mod absence;

use std::collections::HashMap;
use std::time::Duration;

use self::absence::Absence;
use crate::claims::Object;

/// Time between two complete lists without an object, after which it is gone.
pub const BETWEEN_LISTS: Duration = Duration::from_mins(1);
/// A removal waits this long for others of the same moment: the deletion of a namespace or a kind
/// takes its objects with it within this time.
pub const MOMENT: Duration = Duration::from_millis(700);
/// Period in which removals are counted.
pub const WINDOW: Duration = Duration::from_mins(1);
/// Removals that came with too many others wait until their object has been gone for this long.
pub const HELD: Duration = Duration::from_mins(10);
/// Of the clusters of a source, one in this many may go within [`WINDOW`], if that is more than the
/// limit.
const SHARE: usize = 10;

/// A point in time, as the time since the program began.
pub type Moment = Duration;

/// Objects that are absent, or say that they register nothing.
#[derive(Debug)]
pub struct Removals {
    /// Limit of the removals of one source within [`WINDOW`].
    limit: usize,
    absent: HashMap<Object, Absence>,
}

/// The clusters of a source that remain in a complete list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remaining {
    Others,
    Nobody,
}

/// Why an existing object registers nothing any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withdrawal {
    /// A person denied this one: not a mass mistake. It waits for [`MOMENT`] because the rights
    /// that its acceptance gave go first.
    Refusal,
    /// The same, and these rights are gone.
    Stripped,
    /// It is being deleted, perhaps as one of many.
    Deletion,
}

/// Whether a registration may be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum May {
    /// Its object may live.
    No,
    Now,
    At(Moment),
    /// Too many go at once.
    Held {
        until: Moment,
    },
}

// === impl Remaining ===

impl Remaining {
    pub fn of(is_anybody_left: bool) -> Self {
        if is_anybody_left { Self::Others } else { Self::Nobody }
    }
}

// === impl Removals ===

impl Removals {
    pub fn new(limit: usize) -> Self {
        Self { limit, absent: HashMap::new() }
    }

    /// The object exists. Returns true if it had been absent.
    pub fn present(&mut self, object: &Object) -> bool {
        self.absent.remove(object).is_some()
    }

    /// Its deletion was seen.
    pub fn deleted(&mut self, object: Object, now: Moment) {
        let absence = self.absent.entry(object).or_insert(Absence::Gone(now));
        if let Absence::Doubted(_) | Absence::Missing(..) = absence {
            *absence = Absence::Gone(now);
        }
    }

    /// Its deletion was seen while its source could not be read.
    pub fn deleted_in_doubt(&mut self, object: Object) {
        self.absent.entry(object).or_insert(Absence::Doubted(None));
    }

    /// The object says itself that it registers nothing any more. If it says so again, the first
    /// time counts, and gone rights stay gone.
    pub fn withdrawn(&mut self, object: Object, by: Withdrawal, now: Moment) {
        let (since, by) = match (self.absent.get(&object), by) {
            (Some(Absence::Withdrawn { since, by: Withdrawal::Stripped }), Withdrawal::Refusal) => {
                (*since, Withdrawal::Stripped)
            }
            (Some(Absence::Withdrawn { since, .. }), by) => (*since, by),
            (_, by) => (now, by),
        };
        self.absent.insert(object, Absence::Withdrawn { since, by });
    }

    /// The rights of an object's cluster are gone. Returns true if the object was refused, and was
    /// waiting for that.
    pub fn stripped(&mut self, object: &Object) -> bool {
        let Some(Absence::Withdrawn { by, .. }) = self.absent.get_mut(object) else { return false };
        let is_waiting = *by == Withdrawal::Refusal;
        if is_waiting {
            *by = Withdrawal::Stripped;
        }
        is_waiting
    }

    /// A complete list lacks these objects. Those that had withdrawn themselves now count as gone
    /// since their withdrawal.
    pub fn unlisted(&mut self, is_absent: impl Fn(&Object) -> bool) {
        for (_, absence) in self.absent.iter_mut().filter(|(object, _)| is_absent(object)) {
            if let Absence::Withdrawn { since, .. } = *absence {
                *absence = Absence::Gone(since);
            }
        }
    }

    /// Whether the object has withdrawn itself.
    pub fn is_withdrawn(&self, object: &Object) -> bool {
        matches!(self.absent.get(object), Some(Absence::Withdrawn { .. }))
    }

    /// A complete list lacks the object.
    pub fn missing(&mut self, object: Object, remaining: Remaining, now: Moment) {
        let absence = self.absent.entry(object).or_insert(Absence::Doubted(None));
        *absence = match *absence {
            Absence::Doubted(gone) => Absence::Missing(now, gone),
            Absence::Missing(first, gone) if now >= first + BETWEEN_LISTS => match remaining {
                Remaining::Others => Absence::Gone(now),
                Remaining::Nobody => Absence::AllGone(gone.unwrap_or(now)),
            },
            other => other,
        };
    }

    /// Its source cannot be read any more, or is being removed. Ends seen so far may have been part
    /// of that, so they must be confirmed by two complete lists, both made afterwards.
    pub fn doubt(&mut self, source: &str) {
        for (_, absence) in self.absent.iter_mut().filter(|(object, _)| object.source == source) {
            if !matches!(absence, Absence::Withdrawn { by: Withdrawal::Refusal | Withdrawal::Stripped, .. }) {
                *absence = Absence::Doubted(absence.all_gone());
            }
        }
    }

    /// Whether a source has objects that must be missing from another list to be gone.
    pub fn are_missing(&self, source: &str) -> bool {
        let missing = |(object, absence): (&Object, &Absence)| {
            object.source == source && matches!(absence, Absence::Doubted(_) | Absence::Missing(..))
        };
        self.absent.iter().any(missing)
    }

    /// Whether the object is gone, withdrawn, in doubt, or missing from a list.
    pub fn is_absent(&self, object: &Object) -> bool {
        self.absent.contains_key(object)
    }

    pub fn is_gone(&self, object: &Object) -> bool {
        matches!(self.absent.get(object), Some(Absence::Gone(_) | Absence::AllGone(_) | Absence::Withdrawn { .. }))
    }

    /// Whether the registration of `object` may go, if its source has `registered` clusters.
    pub fn may(&self, object: &Object, now: Moment, registered: usize) -> May {
        let held = |since: Moment| if now >= since + HELD { May::Now } else { May::Held { until: since + HELD } };
        let since = match self.absent.get(object).copied() {
            Some(Absence::Withdrawn { by: Withdrawal::Stripped, .. }) => return May::Now,
            Some(Absence::Withdrawn { since, by: Withdrawal::Refusal }) if now >= since + MOMENT => return May::Now,
            Some(Absence::AllGone(since)) => return held(since),
            Some(Absence::Gone(since) | Absence::Withdrawn { since, .. }) => since,
            Some(Absence::Doubted(_) | Absence::Missing(..)) | None => return May::No,
        };
        if now < since + MOMENT {
            return May::At(since + MOMENT);
        }
        // Counts before and after its own end: the first is as likely a mistake as the last.
        let together = self.absent.iter().filter(|(other, absence)| {
            let near = |moment: Moment| moment.abs_diff(since) < WINDOW;
            other.source == object.source && absence.of_a_crowd().is_some_and(near)
        });
        if together.count() <= self.limit.max(registered / SHARE) { May::Now } else { held(since) }
    }

    /// Forgets absences whose registrations are removed, once they no longer count.
    pub fn forget(&mut self, now: Moment, is_registered: impl Fn(&Object) -> bool) {
        let counts = |moment: &Moment| now < *moment + WINDOW;
        self.absent.retain(|object, absence| match absence {
            Absence::Doubted(_) | Absence::Missing(..) => is_registered(object),
            // The object exists: only it says whether it registers anything.
            Absence::Withdrawn { .. } => true,
            Absence::Gone(moment) | Absence::AllGone(moment) => counts(moment) || is_registered(object),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn object(number: usize) -> Object {
        Object { source: "capi", reference: number.to_string() }
    }

    #[test]
    fn what_was_seen_deleted_goes_after_a_moment() {
        let mut removals = Removals::new(20);
        removals.deleted(object(1), SECOND);
        assert_eq!(removals.may(&object(1), SECOND, 100), May::At(SECOND + MOMENT));
        assert_eq!(removals.may(&object(1), SECOND + MOMENT, 100), May::Now);
        assert!(MOMENT < SECOND, "streams end within a second");
        removals.present(&object(1));
        assert_eq!(removals.may(&object(1), 2 * SECOND, 100), May::No, "made anew");
    }

    #[test]
    fn what_is_missing_counts_after_two_lists_a_minute_apart() {
        let mut removals = Removals::new(20);
        removals.missing(object(1), Remaining::Others, Duration::ZERO);
        removals.missing(object(1), Remaining::Others, 59 * SECOND);
        assert!(!removals.is_gone(&object(1)), "lists that follow one another");
        assert_eq!(removals.may(&object(1), 600 * SECOND, 100), May::No, "one list");
        removals.missing(object(1), Remaining::Others, 60 * SECOND);
        assert_eq!(removals.may(&object(1), 61 * SECOND, 100), May::Now);
        removals.missing(object(2), Remaining::Others, Duration::ZERO);
        removals.present(&object(2));
        removals.missing(object(2), Remaining::Others, 60 * SECOND);
        assert!(!removals.is_gone(&object(2)), "it was there in between");
        removals.deleted(object(2), 61 * SECOND);
        assert!(removals.is_gone(&object(2)));
    }

    #[test]
    fn a_source_whose_lists_have_none_of_its_clusters_keeps_them_for_a_while() {
        let mut removals = Removals::new(20);
        for number in 0..2 {
            removals.missing(object(number), Remaining::Nobody, Duration::ZERO);
            removals.missing(object(number), Remaining::Nobody, 61 * SECOND);
        }
        assert!(removals.is_gone(&object(0)) && !removals.are_missing("capi"));
        let until = 61 * SECOND + HELD;
        assert_eq!(removals.may(&object(0), 62 * SECOND, 2), May::Held { until }, "fewer than the limit");
        assert!(removals.present(&object(1)));
        assert_eq!(removals.may(&object(0), 63 * SECOND, 2), May::Held { until }, "whatever came back");
        assert_eq!(removals.may(&object(0), until, 2), May::Now);
        // A source that cannot be read for a while needs two more lists, but not more time.
        removals.doubt("capi");
        for seconds in [300, 361] {
            assert_eq!(removals.may(&object(0), until, 2), May::No);
            removals.missing(object(0), Remaining::Nobody, seconds * SECOND);
        }
        assert_eq!(removals.may(&object(0), 362 * SECOND, 2), May::Held { until });
        removals.missing(object(2), Remaining::Nobody, Duration::ZERO);
        removals.missing(object(2), Remaining::Others, 61 * SECOND);
        assert_eq!(removals.may(&object(2), 62 * SECOND, 2), May::Now, "the source is the right one");
    }

    #[test]
    fn what_says_so_itself_goes_however_many_do() {
        let mut removals = Removals::new(1);
        for number in 0..21 {
            removals.withdrawn(object(number), Withdrawal::Refusal, SECOND);
        }
        removals.withdrawn(object(0), Withdrawal::Refusal, 2 * SECOND);
        removals.doubt("capi");
        assert_eq!(removals.may(&object(0), SECOND, 21), May::At(SECOND + MOMENT));
        assert_eq!(removals.may(&object(0), SECOND + MOMENT, 21), May::Now, "said again, it is no later");
        removals.deleted(object(30), 3 * SECOND);
        assert_eq!(removals.may(&object(30), 4 * SECOND, 21), May::Now, "no crowd with those");
        assert!(removals.present(&object(0)) && !removals.is_withdrawn(&object(0)));
    }

    #[test]
    fn a_refusal_waits_for_rights_to_go_and_not_for_long() {
        let mut removals = Removals::new(1);
        assert!(!removals.stripped(&object(0)), "it is there");
        removals.withdrawn(object(0), Withdrawal::Refusal, SECOND);
        assert!(removals.stripped(&object(0)) && !removals.stripped(&object(0)), "news once");
        removals.withdrawn(object(0), Withdrawal::Refusal, SECOND);
        removals.doubt("capi");
        assert_eq!(removals.may(&object(0), SECOND, 21), May::Now, "said again, its rights are gone all the same");
        assert_eq!(removals.absent[&object(0)].of_a_crowd(), None);
        removals.withdrawn(object(1), Withdrawal::Deletion, SECOND);
        assert!(!removals.stripped(&object(1)), "a mistake may be one of many");
        assert_eq!(removals.may(&object(1), SECOND, 21), May::At(SECOND + MOMENT));
        removals.present(&object(0));
        removals.withdrawn(object(0), Withdrawal::Refusal, 2 * SECOND);
        assert_eq!(removals.may(&object(0), 2 * SECOND, 21), May::At(2 * SECOND + MOMENT), "accepted in between");
    }

    #[test]
    fn deletions_that_something_delays_wait_as_others_do() {
        let mut removals = Removals::new(1);
        removals.withdrawn(object(0), Withdrawal::Deletion, SECOND);
        assert_eq!(removals.may(&object(0), 2 * SECOND, 0), May::Now, "one alone");
        removals.deleted(object(1), SECOND);
        assert!(matches!(removals.may(&object(0), 2 * SECOND, 0), May::Held { .. }), "two in a minute");
        assert!(matches!(removals.may(&object(1), 2 * SECOND, 0), May::Held { .. }));
        removals.withdrawn(object(0), Withdrawal::Refusal, 3 * SECOND);
        assert_eq!(removals.may(&object(0), 3 * SECOND, 0), May::Now, "a person says no to this one");
        removals.withdrawn(object(2), Withdrawal::Deletion, SECOND);
        removals.doubt("capi");
        assert_eq!(removals.may(&object(2), 600 * SECOND, 0), May::No, "its kind was being deleted");
        assert!(removals.is_gone(&object(0)), "a no stays one");
    }

    #[test]
    fn what_said_so_and_is_not_listed_any_more_is_forgotten() {
        let mut removals = Removals::new(1);
        for by in [Withdrawal::Refusal, Withdrawal::Deletion] {
            removals.withdrawn(object(1), by, SECOND);
            removals.forget(600 * SECOND, |_| false);
            assert!(removals.is_withdrawn(&object(1)), "it is there");
            removals.unlisted(|absent| *absent == object(2));
            assert!(removals.is_withdrawn(&object(1)), "another");
            removals.unlisted(|absent| *absent == object(1));
            removals.forget(600 * SECOND, |_| false);
            assert!(removals.absent.is_empty());
        }
    }

    #[test]
    fn ends_seen_while_a_source_goes_have_to_be_seen_again() {
        let mut removals = Removals::new(20);
        removals.deleted(object(1), SECOND);
        removals.doubt("capi");
        assert!(removals.are_missing("capi") && !removals.are_missing("karmada"));
        assert_eq!(removals.may(&object(1), 600 * SECOND, 100), May::No);
        removals.missing(object(1), Remaining::Others, 600 * SECOND);
        assert!(!removals.is_gone(&object(1)), "its kind was away for long: this list is the first");
        removals.missing(object(1), Remaining::Others, 660 * SECOND);
        assert!(removals.is_gone(&object(1)) && !removals.are_missing("capi"));
    }

    #[test]
    fn ends_of_a_source_that_cannot_be_read_are_doubted() {
        let mut removals = Removals::new(20);
        removals.deleted_in_doubt(object(1));
        removals.missing(object(1), Remaining::Others, 600 * SECOND);
        assert!(!removals.is_gone(&object(1)) && removals.are_missing("capi"));
        removals.deleted_in_doubt(object(1));
        removals.missing(object(1), Remaining::Others, 660 * SECOND);
        assert!(removals.is_gone(&object(1)), "said again, it is missing for no less");
        removals.missing(object(2), Remaining::Others, SECOND);
        removals.doubt("capi");
        removals.missing(object(2), Remaining::Others, 600 * SECOND);
        assert!(!removals.is_gone(&object(2)), "the list before the doubt is none");
        removals.deleted(object(2), 601 * SECOND);
        assert!(removals.is_gone(&object(2)));
    }

    #[test]
    fn a_fleet_that_goes_at_once_waits_all_of_it() {
        let mut removals = Removals::new(20);
        for number in 0..21 {
            removals.deleted(object(number), u32::try_from(number).unwrap() * Duration::from_millis(10));
        }
        for number in 0..21 {
            let may = removals.may(&object(number), SECOND, 100);
            assert!(matches!(may, May::Held { .. }), "the first as well as the last: {may:?}");
        }
        assert_eq!(removals.may(&object(0), HELD, 100), May::Now, "gone for as long as that, it was meant");
        assert_eq!(removals.may(&object(0), SECOND, 210), May::Now, "a tenth of a larger fleet");
        let other = Object { source: "karmada", reference: "1".into() };
        removals.deleted(other.clone(), SECOND);
        assert_eq!(removals.may(&other, 2 * SECOND, 100), May::Now, "another source");
    }

    #[test]
    fn what_comes_back_frees_the_others() {
        let mut removals = Removals::new(1);
        removals.deleted(object(1), Duration::ZERO);
        removals.deleted(object(2), Duration::ZERO);
        assert!(matches!(removals.may(&object(1), SECOND, 0), May::Held { .. }));
        removals.present(&object(2));
        assert_eq!(removals.may(&object(1), SECOND, 0), May::Now);
    }

    #[test]
    fn removals_that_were_made_count_for_a_minute_and_are_forgotten() {
        let mut removals = Removals::new(1);
        removals.deleted(object(1), Duration::ZERO);
        removals.forget(SECOND, |_| false);
        removals.deleted(object(2), 30 * SECOND);
        assert!(matches!(removals.may(&object(2), 31 * SECOND, 0), May::Held { .. }), "two in a minute");
        removals.forget(61 * SECOND, |gone| *gone == object(2));
        assert_eq!(removals.may(&object(2), 61 * SECOND, 0), May::Now);
        removals.forget(600 * SECOND, |_| false);
        assert!(removals.absent.is_empty());
    }
}
