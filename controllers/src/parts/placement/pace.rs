//! How often a Placement without expressions runs because of what changes elsewhere: an agent
//! changes its cluster as often as it likes, and each change concerns all Placements of its set.

use std::time::Duration;

use time::OffsetDateTime;

/// Runs one after the other, without a pause.
const AT_ONCE: u32 = 5;
/// For one more. So long may decisions be behind by this.
const EACH: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// When there is room for [`AT_ONCE`] again.
    full: Option<OffsetDateTime>,
    /// The Placement itself changed, which its author does and waits for.
    is_edited: bool,
}

// === impl Pace ===

impl Pace {
    /// Of a Placement that is new, or was changed.
    pub fn edited() -> Self {
        Self { full: None, is_edited: true }
    }

    /// Takes a run. If none is left, returns when there is one.
    pub fn take(&mut self, now: OffsetDateTime) -> Option<OffsetDateTime> {
        if std::mem::take(&mut self.is_edited) {
            return None;
        }
        let room = EACH * AT_ONCE;
        // A clock that was set back is nothing to wait for.
        let full = self.full.filter(|full| (now..=now + room).contains(full)).unwrap_or(now) + EACH;
        if full > now + room {
            return Some(full - room);
        }
        self.full = Some(full);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes, one each 10 ms, and runs as a queue begins them: when, after the first.
    fn runs(changes: u32) -> Vec<Duration> {
        let (mut pace, start) = (Pace::edited(), OffsetDateTime::UNIX_EPOCH);
        assert_eq!(pace.take(start), None, "its author waits for nothing");
        let (mut runs, mut waits) = (Vec::new(), None::<OffsetDateTime>);
        for number in 0..changes {
            let now = start + Duration::from_millis(10) * number;
            if waits.is_some_and(|until| now < until) {
                continue;
            }
            waits = pace.take(now);
            if waits.is_none() {
                runs.push(Duration::try_from(now - start).unwrap());
            }
        }
        runs
    }

    #[test]
    fn changes_without_end_buy_two_runs_a_second_and_decisions_are_half_a_second_behind() {
        let runs = runs(1000);
        assert_eq!(runs.len(), 5 + 19, "{runs:?}");
        assert!(runs.windows(2).all(|pair| pair[1] <= pair[0] + EACH), "{runs:?}");
    }

    #[test]
    fn changes_now_and_then_are_followed_at_once() {
        let (mut pace, start) = (Pace::edited(), OffsetDateTime::UNIX_EPOCH);
        assert!((0..100).all(|number| pace.take(start + EACH * number).is_none()));
        let later = start + EACH * 200;
        assert!((0..5).all(|_| pace.take(later).is_none()), "there is room for some again");
        assert_eq!(pace.take(later), Some(later + EACH));
        assert_eq!(pace.take(start), None, "the clock was set back");
    }
}
