//! `cluster_gateway_replica_sets_*`: the `ManifestWorkReplicaSets` that this replica keeps.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::Operation;
use super::tally::{ObjectState, States};
use crate::wakes::Key;

const PREFIX: &str = "cluster_gateway_replica_sets";

/// Clones share their values.
#[derive(Debug, Clone)]
pub struct ReplicaSets {
    states: States<SetState>,
    writes: Family<OfSetWrite, Counter>,
}

/// The state of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetState {
    /// All clusters have succeeded with the template.
    Complete,
    Progressing,
    /// Too many clusters have failed: no other gets the template.
    Stopped,
    /// Its conditions say what is wrong with it.
    Invalid,
}

/// The kind of a written object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetObject {
    Work,
    /// Its finalizer or status.
    Set,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfSetWrite {
    object: &'static str,
    operation: &'static str,
}

// === impl SetState ===

impl ObjectState for SetState {
    fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Progressing => "progressing",
            Self::Stopped => "stopped",
            Self::Invalid => "invalid",
        }
    }
}

// === impl ReplicaSets ===

impl ReplicaSets {
    pub fn register(registry: &mut Registry) -> Self {
        let sets = Self { states: States::default(), writes: Family::default() };
        let name = |name: &str| format!("{PREFIX}_{name}");
        registry.register(name("sets"), "ManifestWorkReplicaSets, by the state of their rollout", sets.states.family());
        registry.register(
            name("writes"),
            "Writes of ManifestWorks, and of ManifestWorkReplicaSets' finalizers and statuses",
            sets.writes.clone(),
        );
        sets
    }

    pub fn settle(&self, key: &Key, state: SetState) {
        self.states.settle(key.clone(), state);
    }

    pub fn wrote(&self, object: SetObject, operation: Operation) {
        let object = match object {
            SetObject::Work => "work",
            SetObject::Set => "set",
        };
        self.writes.get_or_create(&OfSetWrite { object, operation: operation.as_str() }).inc();
    }

    pub fn forget(&self, key: &Key) {
        self.states.forget(key);
    }

    /// Another replica keeps them, or none.
    pub fn clear(&self) {
        self.states.clear();
    }
}
