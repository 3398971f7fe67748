//! Limits log lines that strangers can cause: each is worth writing, but not ten thousand of them.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::rate::Window;

/// Most lines within one [`PERIOD`]. Further ones are counted, and the next line reports their
/// number.
const MOST: u32 = 20;
/// Time after which the same number of lines is written again.
pub const PERIOD: Duration = Duration::from_secs(10);

/// Cheap to clone; clones count together.
#[derive(Debug, Clone, Default)]
pub struct LogThrottle(Arc<Mutex<LineCount>>);

#[derive(Debug, Default)]
struct LineCount {
    lines: Window<Instant>,
    suppressed: u64,
}

// === impl LogThrottle ===

impl LogThrottle {
    /// Whether another line may be written, and how many were suppressed before it.
    pub fn due(&self) -> Option<u64> {
        let mut state = self.0.lock();
        if state.lines.take(Instant::now(), MOST, PERIOD).is_err() {
            state.suppressed += 1;
            return None;
        }
        Some(std::mem::take(&mut state.suppressed))
    }

    /// Whether no line was requested in this [`PERIOD`].
    pub fn is_idle(&self) -> bool {
        self.0.lock().lines.is_over(Instant::now(), PERIOD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_told_of_in_a_few_lines() {
        let throttle = LogThrottle::default();
        let lines = (0..1_000).filter_map(|_| throttle.due()).count();
        assert_eq!(lines, 20);
        tokio::time::sleep(PERIOD).await;
        assert_eq!(throttle.due(), Some(980));
        assert_eq!(throttle.due(), Some(0));
    }
}
