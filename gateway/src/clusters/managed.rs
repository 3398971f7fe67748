//! The `ManagedCluster`s of Open Cluster Management, where a hub has them: followed by one watch, and kept in memory.
//!
//! Their kind is defined by a custom resource that may be installed later, and removed: a hub without it is asked again now and
//! then, and at once when somebody has seen it. A gateway that may not read them goes on as if there were none, unless they say
//! where clusters are: to forget that would send credentials to addresses that nobody meant any more. So a refusal changes nothing
//! then, and a kind that is gone counts only when it stays gone.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api::hub_object::{self, HubList};
use api::managed_cluster::ManagedCluster;
use api::watch_event::{Change, HubEvent};
use arc_swap::ArcSwap;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::hub::{Collection, Hub, HubFailure, Line};

/// How often a hub without the kind is asked whether it has it now.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// The same where we are not to know: each time is a refused request in the hub's audit log.
const ASK_AGAIN: Duration = Duration::from_mins(10);
/// For so long must the hub know nothing of the kind before clusters are where their Secrets say. Definitions are replaced by being
/// deleted and created.
const GONE_AFTER: Duration = Duration::from_mins(1);
/// Shortest and longest pause after a failure.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// The hub ends our watch after this many seconds; nothing is lost by it.
const LIFETIME: u64 = 290;

/// What ManagedClusters are needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Readers of virtual clusters, who ask the hub themselves.
    Display,
    /// They say where clusters are.
    Location,
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
pub async fn run(hub: Hub, published: Arc<ManagedClusters>, purpose: Purpose) {
    let managed = Managed::default();
    let mut following =
        Following { hub, published, purpose, managed, first: true, missing_since: None, pause: PAUSES.0 };
    loop {
        match following.list().await {
            Ok(version) => following.watch(version).await,
            Err(failure) => following.unread(&failure).await,
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
    purpose: Purpose,
    managed: Managed,
    /// The hub was not asked yet.
    first: bool,
    /// Since when every answer was that there is no such kind.
    missing_since: Option<Instant>,
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
        self.missing_since = None;
        self.publish();
        Ok(metadata.resource_version)
    }

    /// Waits until it is time to ask again.
    async fn unread(&mut self, failure: &HubFailure) {
        match (failure.code(), self.purpose) {
            (Some(404), Purpose::Location) if self.managed.kind.is_some() && !self.is_gone() => {
                tracing::warn!("the hub knows no ManagedClusters now: they stay as they were for {GONE_AFTER:?}");
                self.pause().await;
            }
            (Some(404), _) => self.absent(LOOK_AGAIN).await,
            (Some(403), Purpose::Display) => self.absent(ASK_AGAIN).await,
            _ => self.failed(failure).await,
        }
    }

    fn is_gone(&mut self) -> bool {
        self.missing_since.get_or_insert_with(Instant::now).elapsed() >= GONE_AFTER
    }

    async fn absent(&mut self, again: Duration) {
        self.first = false;
        let was_there = self.managed.kind.is_some();
        if was_there {
            tracing::warn!(
                "the hub has no ManagedClusters any more, or does not show them: there are none from now on"
            );
        }
        if was_there || !self.managed.known {
            self.managed = Managed { known: true, ..Managed::default() };
            self.publish();
        }
        let _ = timeout(again, self.published.seen.notified()).await;
    }

    async fn failed(&mut self, failure: &HubFailure) {
        self.missing_since = None;
        if failure.code() == Some(403) {
            tracing::warn!(
                error = %failure,
                "ManagedClusters stay as they were last read: grant list and watch on managedclusters.cluster.open-cluster-management.io"
            );
        } else {
            tracing::warn!(error = %failure, "ManagedClusters stay as they were last read");
        }
        self.pause().await;
    }

    async fn pause(&mut self) {
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
                // The list says whether there are any.
                Err(failure) => return self.failed(&failure).await,
            };
            self.pause = PAUSES.0;
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

#[cfg(test)]
mod tests;
