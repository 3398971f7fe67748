//! Whether a cluster was reached a moment ago, which distinguishes an agent that changes its links
//! from one that is away.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// A cluster without a link is likely to have one again within this time: its agent looks for
/// another server at least each second of it (`connector/backoff` of the agent), or another agent
/// starts.
const MOMENT: Duration = Duration::from_secs(10);

/// The streams of one cluster.
#[derive(Debug, Default)]
pub struct Reached(Mutex<Streams>);

#[derive(Debug, Default)]
struct Streams {
    open: usize,
    /// When the last one ended.
    ended: Option<Instant>,
}

/// One of them, until dropped.
#[derive(Debug)]
pub struct Reaching(Arc<Reached>);

// === impl Reached ===

impl Reached {
    pub fn begin(self: &Arc<Self>) -> Reaching {
        self.0.lock().open += 1;
        Reaching(Arc::clone(self))
    }

    /// Whether a stream is open, or was within a [`MOMENT`].
    pub fn is_recent(&self) -> bool {
        let streams = self.0.lock();
        streams.open > 0 || streams.ended.is_some_and(|ended| ended.elapsed() < MOMENT)
    }
}

// === impl Reaching ===

impl Drop for Reaching {
    fn drop(&mut self) {
        let mut streams = self.0.0.lock();
        streams.open -= 1;
        streams.ended = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_cluster_stays_recent_for_a_moment_after_its_last_stream() {
        let reached = Arc::new(Reached::default());
        assert!(!reached.is_recent(), "it was never reached");
        let (first, second) = (reached.begin(), reached.begin());
        drop(first);
        advance(2 * MOMENT).await;
        assert!(reached.is_recent(), "a stream is open");
        drop(second);
        advance(MOMENT.saturating_sub(Duration::from_millis(1))).await;
        assert!(reached.is_recent());
        advance(Duration::from_millis(1)).await;
        assert!(!reached.is_recent());
    }
}
