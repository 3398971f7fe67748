//! When a work's status is written: changes are gathered for a moment, and flapping values are not
//! written each time.

use std::time::Duration;

use net::backoff::Backoff;
use net::rate::{Cells, Rate};
use tokio::time::Instant;

/// How long changes are gathered.
const GATHERED: Duration = Duration::from_secs(1);
/// Continuous writes.
const RATE: Rate = Rate { each: Duration::from_secs(5), burst: 5 };

/// The writes of one work's status.
#[derive(Debug, Default)]
pub struct StatusWrites {
    made: Cells<Instant>,
    /// Since when a status waits to be written.
    since: Option<Instant>,
}

// === impl StatusWrites ===

impl StatusWrites {
    /// A status must be written. Returns how long that must wait; an urgent one does not wait for
    /// other changes.
    pub fn wait(&mut self, now: Instant, is_urgent: bool) -> Option<Duration> {
        let since = *self.since.get_or_insert(now);
        let gathered = if is_urgent { since } else { since + GATHERED };
        let wait = gathered.saturating_duration_since(now).max(self.made.wait(now, RATE));
        (!wait.is_zero()).then_some(wait)
    }

    /// No status must be written.
    pub fn rest(&mut self) {
        self.since = None;
    }

    pub fn wrote(&mut self, now: Instant) {
        self.since = None;
        self.made.note(now, RATE);
    }
}

/// Intervals of passes: of the first ones in a series over a work, up to those over a work whose
/// objects change continuously.
const RESTS: Backoff =
    Backoff { chance: 0.0, ..Backoff::doubling(Duration::from_millis(100), Duration::from_secs(10)) };

/// How long a work rests between two passes, because its objects may change each second.
#[derive(Debug, Default)]
pub struct Heat {
    last: Option<Instant>,
    /// Passes that followed each other as early as allowed.
    level: u32,
    generation: i64,
}

// === impl Heat ===

impl Heat {
    /// How long a pass must wait. One for another generation need not.
    pub fn wait(&self, now: Instant, generation: i64) -> Option<Duration> {
        let last = self.last.filter(|_| generation == self.generation)?;
        (last + self.rest()).checked_duration_since(now).filter(|rest| !rest.is_zero())
    }

    /// A pass begins.
    pub fn passed(&mut self, now: Instant, generation: i64) {
        let since = self.last.map_or(Duration::MAX, |last| now.saturating_duration_since(last));
        let is_hot = generation == self.generation && since < self.rest() * 2;
        self.level = if is_hot { self.level.saturating_add(1) } else { self.level / 2 };
        // A higher level would not make the rest longer.
        self.level = self.level.min(7);
        if generation != self.generation || since > RESTS.longest * 2 {
            self.level = 0;
        }
        (self.last, self.generation) = (Some(now), generation);
    }

    fn rest(&self) -> Duration {
        RESTS.window(self.level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_flaps_is_written_once_in_five_seconds() {
        flaps(false).await;
        flaps(true).await;
        let mut writes = StatusWrites::default();
        assert_eq!(writes.wait(Instant::now(), true), None, "what is urgent is told at once");
    }

    async fn flaps(is_urgent: bool) {
        let (mut writes, begin) = (StatusWrites::default(), Instant::now());
        let (mut count, mut longest) = (0_u32, Duration::ZERO);
        while begin.elapsed() < Duration::from_secs(100) {
            if let Some(wait) = writes.wait(Instant::now(), is_urgent) {
                longest = longest.max(wait);
                tokio::time::advance(wait).await;
            } else {
                writes.wrote(Instant::now());
                count += 1;
            }
        }
        assert!((20..=26).contains(&count), "{count}");
        assert!(longest <= RATE.each, "after five in a row, none is late by more: {longest:?}");
        writes.rest();
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!(writes.wait(Instant::now(), false), Some(GATHERED), "a change after peace is told at once");
    }

    #[tokio::test(start_paused = true)]
    async fn passes_over_what_changes_on_and_on_become_rare_and_a_new_generation_is_never_late() {
        let (mut heat, begin) = (Heat::default(), Instant::now());
        let mut passes = 0_u32;
        while begin.elapsed() < Duration::from_secs(100) {
            if let Some(wait) = heat.wait(Instant::now(), 1) {
                tokio::time::advance(wait).await;
            } else {
                heat.passed(Instant::now(), 1);
                passes += 1;
            }
        }
        assert!((10..=20).contains(&passes), "{passes}");
        assert!(heat.wait(Instant::now(), 2).is_none());
        tokio::time::advance(RESTS.longest * 3).await;
        heat.passed(Instant::now(), 1);
        assert_eq!(heat.wait(Instant::now(), 1), Some(RESTS.first), "after peace it begins anew");
    }
}
