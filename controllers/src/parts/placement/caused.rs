//! How often a Placement without expressions runs because of what changes elsewhere: an agent
//! changes its cluster as often as it likes, and each change concerns all Placements of its set.

use std::time::Duration;

use net::rate::{Cells, Rate};
use tokio::time::Instant;

/// Decisions may be behind by one interval because of it.
const RATE: Rate = Rate { each: Duration::from_millis(500), burst: 5 };

/// The runs of one Placement.
#[derive(Debug)]
pub struct CausedRuns {
    made: Cells<Instant>,
    /// The Placement itself changed, which its author does and waits for.
    is_edited: bool,
}

// === impl CausedRuns ===

impl CausedRuns {
    /// Of a Placement that is new, or was changed.
    pub fn edited() -> Self {
        Self { made: Cells::default(), is_edited: true }
    }

    /// Takes a run.
    ///
    /// # Errors
    ///
    /// Returns the time until there is one, if none is left.
    pub fn take(&mut self, now: Instant) -> Result<(), Duration> {
        if std::mem::take(&mut self.is_edited) {
            return Ok(());
        }
        self.made.take(now, RATE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes, one each 10 ms, and runs as a queue begins them: when, after the first.
    fn runs(changes: u32) -> Vec<Duration> {
        let (mut caused, start) = (CausedRuns::edited(), Instant::now());
        assert_eq!(caused.take(start), Ok(()), "its author waits for nothing");
        let (mut runs, mut waits) = (Vec::new(), start);
        for number in 0..changes {
            let now = start + Duration::from_millis(10) * number;
            if now < waits {
                continue;
            }
            match caused.take(now) {
                Ok(()) => runs.push(now - start),
                Err(wait) => waits = now + wait,
            }
        }
        runs
    }

    #[test]
    fn changes_without_end_buy_two_runs_a_second_and_decisions_are_half_a_second_behind() {
        let runs = runs(1000);
        assert_eq!(runs.len(), 5 + 19, "{runs:?}");
        assert!(runs.windows(2).all(|pair| pair[1] <= pair[0] + RATE.each), "{runs:?}");
    }

    #[test]
    fn changes_now_and_then_are_followed_at_once() {
        let (mut caused, start) = (CausedRuns::edited(), Instant::now());
        assert!((0..100).all(|number| caused.take(start + RATE.each * number).is_ok()));
        let later = start + RATE.each * 200;
        assert!((0..5).all(|_| caused.take(later).is_ok()), "there is room for some again");
        assert_eq!(caused.take(later), Err(RATE.each));
    }
}
