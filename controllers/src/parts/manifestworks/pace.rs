//! When a work's status is written: changes are gathered for a moment, and values that flap are not
//! written each time.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// For which changes are gathered.
const GATHERED: Duration = Duration::from_secs(1);
/// Between writes that go on and on.
const BETWEEN: Duration = Duration::from_secs(5);
/// Writes that may follow each other faster.
const BURST: u32 = 5;

#[derive(Debug, Default)]
pub struct Pace {
    /// The last writes, of which there are so many as may follow each other.
    written: VecDeque<Instant>,
    /// Since when something is to be written.
    since: Option<Instant>,
}

// === impl Pace ===

impl Pace {
    /// Something is to be written. Returns for how long that has to wait.
    pub fn wait(&mut self, now: Instant) -> Option<Duration> {
        let since = *self.since.get_or_insert(now);
        let first = self.written.front().filter(|_| self.written.len() >= BURST as usize);
        let earliest = first.map_or(since, |first| since.max(*first + BETWEEN * BURST));
        (since + GATHERED).max(earliest).checked_duration_since(now).filter(|rest| !rest.is_zero())
    }

    /// Nothing is to be written.
    pub fn rest(&mut self) {
        self.since = None;
    }

    pub fn wrote(&mut self, now: Instant) {
        self.since = None;
        self.written.push_back(now);
        if self.written.len() > BURST as usize {
            self.written.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_flaps_is_written_once_in_five_seconds() {
        let (mut pace, begin) = (Pace::default(), Instant::now());
        let mut writes = 0_u32;
        while begin.elapsed() < Duration::from_secs(100) {
            if let Some(wait) = pace.wait(Instant::now()) {
                tokio::time::advance(wait).await;
            } else {
                pace.wrote(Instant::now());
                writes += 1;
            }
        }
        assert!((20..=26).contains(&writes), "{writes}");
        pace.rest();
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!(pace.wait(Instant::now()), Some(GATHERED), "a change after peace is told at once");
    }
}
