//! The `ManagedCluster`s of Open Cluster Management, where a hub has them: followed by one watch,
//! and kept in memory.
//!
//! Their kind is defined by a custom resource that may be installed later, and removed: a hub
//! without it is asked again now and then, and at once when a reader has seen it. A gateway that
//! may not read them goes on as if there were none, unless they say where clusters are: to forget
//! that would send credentials to outdated addresses. So a refusal changes nothing then, and a kind
//! that is gone counts only when it stays gone.

mod following;

use std::collections::HashMap;
use std::sync::Arc;

use api::managed_cluster::ManagedCluster;
use arc_swap::ArcSwap;
use telemetry::readiness::NotReady;
use tokio::sync::{Notify, watch};

pub use self::following::run;
use crate::hub::HubFailure;

/// What they are needed for.
#[derive(Debug)]
pub enum Purpose {
    /// Readers of virtual clusters, which ask the hub themselves.
    Display,
    /// They say where clusters are. Held until it is known whether there are any.
    Location(Option<NotReady>),
}

/// What is known now, for readers.
#[derive(Default)]
pub struct ManagedClusters {
    current: ArcSwap<Managed>,
    changed: watch::Sender<()>,
    seen: Notify,
}

/// All of them at one moment.
#[derive(Default, Clone)]
pub struct Managed {
    /// The hub has answered: they are these, or there are none.
    known: bool,
    /// Absent while the hub has no such kind, or does not let us see what is only displayed.
    kind: Option<Kind>,
    clusters: HashMap<String, Arc<ManagedCluster>>,
}

/// The kind is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// The version at which it was noticed; 0 if it was there from the start. A reader of the hub
    /// before that may have missed some.
    pub since: u64,
}

// === impl ManagedClusters ===

impl ManagedClusters {
    pub fn current(&self) -> Arc<Managed> {
        self.current.load_full()
    }

    /// Tells of every change.
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Completes when the hub has answered for the first time.
    pub async fn known(&self) {
        let mut changed = self.changed.subscribe();
        while !self.current.load().known {
            // The sender is ours and alive.
            let _ = changed.changed().await;
        }
    }

    /// A reader has seen that the hub has the kind after all: looks at once.
    pub fn look(&self) {
        self.seen.notify_one();
    }

    /// As if the hub had just these.
    #[cfg(test)]
    pub fn set(&self, clusters: impl IntoIterator<Item = ManagedCluster>) {
        let clusters = clusters.into_iter().map(|one| (one.metadata.name.clone(), Arc::new(one))).collect();
        self.publish(Managed { known: true, kind: Some(Kind { since: 0 }), clusters });
    }

    fn publish(&self, managed: Managed) {
        self.current.store(Arc::new(managed));
        self.changed.send_replace(());
    }
}

// === impl Managed ===

impl Managed {
    pub fn kind(&self) -> Option<Kind> {
        self.kind
    }

    pub fn get(&self, name: &str) -> Option<&Arc<ManagedCluster>> {
        self.clusters.get(name)
    }
}

/// The hub has no such kind, or we are not to see it: then there are none of them to show.
pub fn is_absence(failure: &HubFailure) -> bool {
    matches!(failure.code(), Some(403 | 404))
}
