//! Readiness as the sum of named conditions, each held by its owner.

use std::sync::Arc;

use parking_lot::Mutex;

/// What still keeps the process from being ready. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<Mutex<Vec<&'static str>>>);

/// Keeps the process unready until dropped.
#[derive(Debug)]
pub struct NotReady {
    readiness: Readiness,
    reason: &'static str,
}

// === impl Readiness ===

impl Readiness {
    /// Blocks readiness for `reason` until the returned value is dropped.
    pub fn block(&self, reason: &'static str) -> NotReady {
        self.0.lock().push(reason);
        NotReady { readiness: self.clone(), reason }
    }

    /// The reasons against readiness; empty means ready.
    pub fn blocked_by(&self) -> Vec<&'static str> {
        self.0.lock().clone()
    }
}

impl Drop for NotReady {
    fn drop(&mut self) {
        let mut reasons = self.readiness.0.lock();
        if let Some(index) = reasons.iter().position(|reason| *reason == self.reason) {
            reasons.remove(index);
        }
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
