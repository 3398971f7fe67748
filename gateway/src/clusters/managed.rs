//! Follows the `ManagedCluster`s of Open Cluster Management by one watch, if the hub has them, and
//! keeps them in memory.
//!
//! Their `CustomResourceDefinition` may be installed later, and removed. A hub without it is asked
//! again from time to time, and at once when a reader has seen the kind. A gateway without
//! permission to read them works as if there were none, unless they decide where clusters are: to
//! forget that would send credentials to outdated addresses. So a refusal changes nothing then, and
//! an absent kind counts only if it stays absent.

mod following;

use std::collections::HashMap;
use std::sync::Arc;

use api::managed_cluster::ManagedCluster;
use arc_swap::ArcSwap;
use telemetry::readiness::NotReady;
use tokio::sync::{Notify, watch};

pub use self::following::run;
use crate::hub::HubFailure;

/// What the `ManagedCluster`s are needed for.
#[derive(Debug)]
pub enum Purpose {
    /// For readers of virtual clusters, which ask the hub themselves.
    Display,
    /// They decide where clusters are. Held until it is known whether there are any.
    Location(Option<NotReady>),
}

/// The known `ManagedCluster`s, for readers.
#[derive(Default)]
pub struct ManagedClusters {
    current: ArcSwap<Managed>,
    changed: watch::Sender<()>,
    seen: Notify,
}

/// All `ManagedCluster`s at one moment.
#[derive(Default, Clone)]
pub struct Managed {
    /// The hub has answered: `clusters` has all of them, or there are none.
    known: bool,
    /// None while the hub has no such kind, or refuses a read that is only for display.
    kind: Option<Kind>,
    clusters: HashMap<String, Arc<ManagedCluster>>,
}

/// The kind exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// The version at which the kind was noticed; 0 if it existed from the start. A reader of the
    /// hub before that version may have missed objects.
    pub since: u64,
}

// === impl ManagedClusters ===

impl ManagedClusters {
    pub fn current(&self) -> Arc<Managed> {
        self.current.load_full()
    }

    /// Notifies of every change.
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Completes when the hub has answered for the first time.
    pub async fn known(&self) {
        let mut changed = self.changed.subscribe();
        while !self.current.load().known {
            // The sender is ours, and alive.
            let _ = changed.changed().await;
        }
    }

    /// A reader has seen that the hub has the kind after all: asks the hub at once.
    pub fn look(&self) {
        self.seen.notify_one();
    }

    /// Acts as if the hub had exactly these.
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

/// Whether there is nothing to show, because the hub has no such kind, or refuses to show it.
pub fn is_absence(failure: &HubFailure) -> bool {
    matches!(failure.code(), Some(403 | 404))
}
