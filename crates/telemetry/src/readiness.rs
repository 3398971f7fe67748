//! Readiness as the sum of named conditions, each with its own owner.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// The reasons why the process is not ready. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<Reasons>);

#[derive(Debug, Default)]
struct Reasons {
    reasons: Mutex<Vec<&'static str>>,
    changed: Condvar,
}

/// Keeps the process unready until it is dropped.
#[derive(Debug)]
pub struct NotReady {
    readiness: Readiness,
    reason: &'static str,
}

// === impl Readiness ===

impl Readiness {
    /// Blocks readiness with `reason` until the returned value is dropped.
    pub fn block(&self, reason: &'static str) -> NotReady {
        self.0.reasons.lock().push(reason);
        NotReady { readiness: self.clone(), reason }
    }

    /// Blocks the thread until ready, for at most `patience`. Returns whether the process is ready.
    pub fn wait(&self, patience: Duration) -> bool {
        let mut reasons = self.0.reasons.lock();
        let waited = self.0.changed.wait_while_for(&mut reasons, |reasons| !reasons.is_empty(), patience);
        !waited.timed_out()
    }

    /// The reasons against readiness. Empty means ready.
    pub fn blocked_by(&self) -> Vec<&'static str> {
        self.0.reasons.lock().clone()
    }
}

impl Drop for NotReady {
    fn drop(&mut self) {
        let mut reasons = self.readiness.0.reasons.lock();
        if let Some(index) = reasons.iter().position(|reason| *reason == self.reason) {
            reasons.remove(index);
        }
        self.readiness.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_only_when_every_owner_let_go() {
        let readiness = Readiness::default();
        let (clusters, identity) = (readiness.block("clusters"), readiness.block("identity"));
        drop(clusters);
        assert_eq!(readiness.blocked_by(), ["identity"]);
        drop(identity);
        assert!(readiness.blocked_by().is_empty());
    }
}
