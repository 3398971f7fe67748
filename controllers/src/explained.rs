//! What answers `/debug/placement`: the part that places, while it does.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

/// Of a Placement, by namespace and name: why its clusters are chosen. None if there is no such.
type Explain = dyn Fn(&str, &str) -> Option<Value> + Send + Sync;

/// The explanation of a Placement.
pub enum Explanation {
    Of(Value),
    NoSuchPlacement,
    /// This replica does not place.
    NobodyKnows,
}

/// Empty while this replica does not place. Clones share it.
#[derive(Clone, Default)]
pub struct Explained(Arc<Mutex<Option<Arc<Explain>>>>, Arc<Mutex<()>>);

/// Answers until it is dropped.
pub struct Answering(Explained);

// === impl Explained ===

impl Explained {
    pub fn by(&self, explain: impl Fn(&str, &str) -> Option<Value> + Send + Sync + 'static) -> Answering {
        *self.0.lock() = Some(Arc::new(explain));
        Answering(self.clone())
    }

    pub fn of(&self, namespace: &str, name: &str) -> Explanation {
        let explain = self.0.lock().clone();
        let Some(explain) = explain else { return Explanation::NobodyKnows };
        // One at a time: each takes a thread.
        let _turn = self.1.lock();
        explain(namespace, name).map_or(Explanation::NoSuchPlacement, Explanation::Of)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        *self.0.0.lock() = None;
    }
}
