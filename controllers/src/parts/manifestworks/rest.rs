//! How long a member asks to be left alone (429 with `Retry-After`): by all works, or only by lists
//! and watches.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// Limit of one rest: the request may come from a server in front of the API server.
pub const LONGEST: Duration = Duration::from_mins(1);

/// Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Rest(Arc<Mutex<Option<Instant>>>);

// === impl Rest ===

impl Rest {
    /// The member asks for a rest. A shorter rest does not end a longer one.
    pub fn ask(&self, at_least: Duration) {
        let until = Instant::now() + at_least.min(LONGEST);
        let mut rest = self.0.lock();
        *rest = (*rest).max(Some(until));
    }

    /// The end of the rest.
    pub fn until(&self) -> Option<Instant> {
        let until = *self.0.lock();
        until.filter(|until| Instant::now() < *until)
    }

    /// Waits for its end, which others may postpone meanwhile.
    pub async fn over(&self) {
        while let Some(until) = self.until() {
            sleep_until(until).await;
        }
    }
}
