//! The `ManagedCluster`s of Open Cluster Management, where a hub has them: followed by one watch, and kept in memory.
//!
//! Their kind is defined by a custom resource that may be installed later, and removed: a hub without it is asked again now and
//! then, and at once when somebody has seen it. A gateway that may not read them goes on as if there were none.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api::hub_object::{self, HubList};
use api::managed_cluster::ManagedCluster;
use api::watch_event::{Change, HubEvent};
use arc_swap::ArcSwap;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use crate::hub::{Collection, Hub, HubFailure, Line};

/// How often a hub without the kind is asked whether it has it now.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// Shortest and longest pause after a failure.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// The hub ends our watch after this many seconds; nothing is lost by it.
const LIFETIME: u64 = 290;

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
    /// Absent while the hub has no such kind, or does not let us read it.
    kind: Option<Kind>,
    clusters: HashMap<String, Arc<ManagedCluster>>,
}

/// The kind is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// The version at which it was noticed; 0 if it was there from the start. Who has read the hub before may have missed some.
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

    /// Somebody has seen that the hub has the kind after all: looks at once.
    pub fn look(&self) {
        self.seen.notify_one();
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

/// Follows them for ever.
pub async fn run(hub: Hub, published: Arc<ManagedClusters>) {
    let mut following = Following { hub, published, managed: Managed::default(), first: true, pause: PAUSES.0 };
    loop {
        match following.list().await {
            Ok(version) => following.watch(version).await,
            Err(failure) if is_absence(&failure) => {
                following.absent();
                let _ = timeout(LOOK_AGAIN, following.published.seen.notified()).await;
            }
            Err(failure) => following.failed(&failure).await,
        }
    }
}

/// The hub has no such kind, or we are not to see it: then there are no clusters of it for us.
pub fn is_absence(failure: &HubFailure) -> bool {
    matches!(failure.code(), Some(403 | 404))
}

struct Following {
    hub: Hub,
    published: Arc<ManagedClusters>,
    managed: Managed,
    /// The hub was not asked yet.
    first: bool,
    pause: Duration,
}

// === impl Following ===

impl Following {
    /// Everything as it is now; returns its version.
    async fn list(&mut self) -> Result<String, HubFailure> {
        let answer = self.hub.list(Collection::ManagedClusters, "").await?;
        let unreadable = |_| HubFailure::unreadable(Collection::ManagedClusters);
        let HubList::<ManagedCluster> { metadata, items } = hub_object::parse(&answer).map_err(unreadable)?;
        if self.managed.kind.is_none() {
            tracing::info!(clusters = items.len(), "the hub has ManagedClusters");
        }
        let since = if self.first { 0 } else { metadata.resource_version.parse().unwrap_or_default() };
        self.managed.kind = self.managed.kind.or(Some(Kind { since }));
        self.managed.clusters = items.into_iter().map(|one| (one.metadata.name.clone(), Arc::new(one))).collect();
        self.first = false;
        self.managed.known = true;
        self.pause = PAUSES.0;
        self.publish();
        Ok(metadata.resource_version)
    }

    fn absent(&mut self) {
        self.first = false;
        if self.managed.kind.is_some() {
            tracing::info!("the hub has no ManagedClusters any more");
        } else if self.managed.known {
            return;
        }
        self.managed = Managed { known: true, ..Managed::default() };
        self.publish();
    }

    async fn failed(&mut self, failure: &HubFailure) {
        tracing::warn!(error = %failure, "ManagedClusters stay as they were last read");
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSES.1);
    }

    /// Applies changes until the version at hand is of no use any more.
    async fn watch(&mut self, mut version: String) {
        loop {
            let query =
                format!("watch=true&allowWatchBookmarks=true&timeoutSeconds={LIFETIME}&resourceVersion={version}");
            let mut watching = match self.hub.watch(Collection::ManagedClusters, &query).await {
                Ok(watching) => watching,
                Err(failure) if is_absence(&failure) => return,
                Err(failure) => return self.failed(&failure).await,
            };
            let before = version.clone();
            while let Line::Whole(line) = watching.lines.next().await {
                match HubEvent::parse(&line) {
                    Ok(HubEvent::Change(change, cluster)) => version = self.apply(change, cluster),
                    Ok(HubEvent::Bookmark { resource_version, .. }) => version = resource_version,
                    Ok(HubEvent::Error(_)) | Err(_) => return,
                }
            }
            if version == before {
                // A hub that ends watches at once must not be asked without pause; nor is a list wrong now and then.
                return sleep(PAUSES.0).await;
            }
        }
    }

    fn apply(&mut self, change: Change, cluster: ManagedCluster) -> String {
        let version = cluster.metadata.resource_version.clone();
        let name = cluster.metadata.name.clone();
        match change {
            Change::Deleted => drop(self.managed.clusters.remove(&name)),
            Change::Added | Change::Modified => drop(self.managed.clusters.insert(name, Arc::new(cluster))),
        }
        self.publish();
        version
    }

    fn publish(&self) {
        self.published.publish(self.managed.clone());
    }
}
