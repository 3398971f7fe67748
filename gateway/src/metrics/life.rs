//! Tracks whether a cluster's series are still exported.
//!
//! A cluster that is gone loses its series, but its requests may last for hours. What they count
//! from then on is discarded, because another cluster may have the name by then.

use parking_lot::{Mutex, MutexGuard};

/// Shared by all code that makes series for one cluster.
#[derive(Debug, Default)]
pub(super) struct Life(Mutex<bool>);

/// Held while a series is made and stored, and while all are removed, so that none is made after
/// the removal.
pub(super) struct LifeGuard<'a>(MutexGuard<'a, bool>);

// === impl Life ===

impl Life {
    pub(super) fn hold(&self) -> LifeGuard<'_> {
        LifeGuard(self.0.lock())
    }
}

// === impl LifeGuard ===

impl LifeGuard<'_> {
    /// The result of `exported`, or of `unread` once the cluster is gone.
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
