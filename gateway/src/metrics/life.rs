//! Whether a cluster's series are still read.
//!
//! A cluster that is gone takes its series along, while its requests may go on for hours. What
//! those count from then on goes nowhere: the name may be another cluster's by then.

use parking_lot::{Mutex, MutexGuard};

/// Shared by all that makes series for one cluster.
#[derive(Debug, Default)]
pub(super) struct Life(Mutex<bool>);

/// Held while a series is made and kept, and while all of them are removed: none comes into being
/// after the removal.
pub(super) struct Held<'a>(MutexGuard<'a, bool>);

// === impl Life ===

impl Life {
    pub(super) fn hold(&self) -> Held<'_> {
        Held(self.0.lock())
    }
}

// === impl Held ===

impl Held<'_> {
    /// What `exported` makes; once the cluster is gone, what `unread` makes.
    pub(super) fn series<T>(&self, exported: impl FnOnce() -> T, unread: impl FnOnce() -> T) -> T {
        if self.is_over() { unread() } else { exported() }
    }

    pub(super) fn is_over(&self) -> bool {
        *self.0
    }

    /// The cluster is gone.
    pub(super) fn end(&mut self) {
        *self.0 = true;
    }
}
