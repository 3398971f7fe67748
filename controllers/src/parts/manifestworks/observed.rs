//! The works as the watch brought them, and the cleanup after works that no longer exist.

use std::sync::Arc;

use kube::api::DynamicObject;

use super::Part;
use super::work::{find, key};
use crate::parts::catch_up::Versions;
use crate::wakes::Key;

// === impl Part ===

impl Part {
    /// The work as the watch brought it last.
    pub(super) fn known(&self, key: &Key) -> Option<Arc<DynamicObject>> {
        find(&self.store, key)
    }

    pub(super) fn is_there(&self, key: &Key, uid: &str) -> bool {
        self.known(key).is_some_and(|found| found.metadata.uid.as_deref().unwrap_or_default() == uid)
    }

    /// Drops the state of a work that is gone, or whose cluster is not ours. Objects on the member
    /// stay.
    pub(super) fn leave(&self, key: &Key) {
        self.memories.forget(key);
        self.metrics.delivery.forget(key);
        if let Some(target) = self.targets.known(&key.0) {
            target.sights.forget(&key.1);
            target.verdicts.forget(&key.1);
        }
    }

    pub(super) fn wake_all(&self) {
        for key in self.keys() {
            self.wakes.push(&key.0, &key.1);
        }
    }

    pub(super) fn wake_in(&self, cluster: &str) {
        for key in self.keys().into_iter().filter(|key| key.0 == cluster) {
            self.wakes.push(&key.0, &key.1);
        }
    }
}

impl Versions for Part {
    fn version(&self, key: &Key) -> Option<String> {
        self.known(key)?.metadata.resource_version.clone()
    }

    fn keys(&self) -> Vec<Key> {
        self.store.state().iter().map(|object| key(object)).collect()
    }
}
