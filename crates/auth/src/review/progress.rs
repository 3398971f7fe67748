//! How far a review is, for whoever decides whether to give it up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the review is at the hub just now, or waits for a permit or its next attempt. Clones
/// share it.
#[derive(Debug, Clone, Default)]
pub struct ReviewProgress(Arc<AtomicBool>);

/// The review is at the hub until this is dropped.
#[derive(Debug)]
pub struct AtHubGuard<'a>(&'a AtomicBool);

// === impl ReviewProgress ===

impl ReviewProgress {
    /// From now on, until what is returned is dropped.
    pub fn enter_hub(&self) -> AtHubGuard<'_> {
        self.0.store(true, Ordering::Relaxed);
        AtHubGuard(&self.0)
    }

    pub(crate) fn is_at_hub(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

// === impl AtHubGuard ===

impl Drop for AtHubGuard<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
