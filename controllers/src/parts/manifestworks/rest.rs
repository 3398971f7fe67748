//! For how long a member asks to be left alone (429 with `Retry-After`): its works, or only its
//! lists and watches.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// The longest time at a time: what asks may be something in front of its API server.
pub const LONGEST: Duration = Duration::from_mins(1);

/// Clones share.
#[derive(Debug, Clone, Default)]
pub struct Rest(Arc<Mutex<Option<Instant>>>);

// === impl Rest ===

impl Rest {
    /// The member asks for a rest. A shorter one does not end it sooner.
    pub fn ask(&self, at_least: Duration) {
        let until = Instant::now() + at_least.min(LONGEST);
        let mut rest = self.0.lock();
        *rest = (*rest).max(Some(until));
    }

    /// Until when it lasts.
    pub fn until(&self) -> Option<Instant> {
        let until = *self.0.lock();
        until.filter(|until| Instant::now() < *until)
    }

    /// Waits for its end, which others may put off meanwhile.
    pub async fn over(&self) {
        while let Some(until) = self.until() {
            sleep_until(until).await;
        }
    }
}
