//! The task that reads `ManagedCluster`s: lists, watches, and decides what follows when it can read
//! none.

mod absence;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api::hub_object::{self, HubList};
use api::list_options::ListOptions;
use api::managed_cluster::ManagedCluster;
use api::watch_event::{Change, HubEvent};
use net::backoff::Backoff;
use tokio::time::{sleep, timeout};

use self::absence::{Absence, Verdict};
use super::{Kind, Managed, ManagedClusters, Purpose};
use crate::hub::{Collection, Hub, HubFailure, Line};

/// Interval of checks whether a hub without the kind has it now.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// The same for a hub that refuses a read that is only for display: growing to ten minutes, without
/// jitter, because each attempt is a refusal in the hub's audit log.
const REFUSED_AGAIN: Backoff = Backoff { chance: 0.0, ..Backoff::doubling(LOOK_AGAIN, Duration::from_mins(10)) };
/// After failures: eventually half a minute on average. A hub that refuses also has each attempt in
/// its audit log.
const PAUSES: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_secs(40));
/// The hub ends our watch after this many seconds. No event is lost by it.
const LIFETIME: u64 = 290;

struct Following {
    hub: Hub,
    published: Arc<ManagedClusters>,
    managed: Managed,
    purpose: Purpose,
    /// The hub has not answered yet.
    first: bool,
    /// Consecutive failures.
    failures: u32,
    refusals: u32,
    absence: Absence,
}

/// Follows `ManagedCluster`s forever.
pub async fn run(hub: Hub, published: Arc<ManagedClusters>, purpose: Purpose) {
    let mut following = Following {
        hub,
        published,
        managed: Managed::default(),
        purpose,
        first: true,
        failures: 0,
        refusals: 0,
        absence: Absence::default(),
    };
    let mut seen = false;
    loop {
        let pause = if !seen && following.is_needless().await {
            following.absent()
        } else {
            match following.read().await {
                Ok(()) => continue,
                Err(failure) => following.judge(failure).await,
            }
        };
        seen = timeout(pause, following.published.seen.notified()).await.is_ok();
    }
}

// === impl Following ===

impl Following {
    /// Whether there is nothing to display, by discovery, which any client may read. A hub without
    /// the kind refuses a client without permission for it, and records that in its audit log:
    /// every default installation would cause this.
    async fn is_needless(&self) -> bool {
        matches!(self.purpose, Purpose::Display)
            && self.managed.kind.is_none()
            && matches!(absence::names_group(&self.hub).await, Ok(false))
    }

    async fn read(&mut self) -> Result<(), HubFailure> {
        let version = self.list().await?;
        self.watch(version).await
    }

    /// Reads all objects. Returns the version of the list.
    async fn list(&mut self) -> Result<String, HubFailure> {
        let mut clusters = HashMap::new();
        let take = |page: &[u8]| {
            let HubList::<ManagedCluster> { metadata, items } = hub_object::parse(page)?;
            clusters.extend(items.into_iter().map(|one| (one.metadata.name.clone(), Arc::new(one.known()))));
            Ok(metadata)
        };
        let version = self.hub.list_all(Collection::ManagedClusters, &ListOptions::default(), take).await?;
        if self.managed.kind.is_none() {
            tracing::info!(clusters = clusters.len(), "the hub has ManagedClusters");
        }
        let since = if self.first { 0 } else { version.parse().unwrap_or_default() };
        self.managed.kind = self.managed.kind.or(Some(Kind { since }));
        self.managed.clusters = clusters;
        self.first = false;
        self.managed.known = true;
        self.absence = Absence::default();
        self.publish();
        Ok(version)
    }

    /// Applies changes until a new list is due: after an error event, an unreadable line, or a
    /// watch without any event.
    async fn watch(&mut self, mut version: String) -> Result<(), HubFailure> {
        loop {
            let query =
                format!("watch=true&allowWatchBookmarks=true&timeoutSeconds={LIFETIME}&resourceVersion={version}");
            let mut watching = self.hub.watch(None, Collection::ManagedClusters, &query).await?;
            // Not already after the list: a gateway that may list but not watch must also slow
            // down.
            (self.failures, self.refusals) = (0, 0);
            let before = version.clone();
            while let Line::Whole(line) = watching.lines.next().await {
                match HubEvent::parse(&line) {
                    Ok(HubEvent::Change(change, cluster)) => version = self.apply(change, cluster),
                    Ok(HubEvent::Bookmark { resource_version, .. }) => version = resource_version,
                    Ok(HubEvent::Error(_)) | Err(_) => return Ok(()),
                }
            }
            if version == before {
                // A hub that ends watches at once must not be asked without a pause, and an
                // occasional list does no harm.
                sleep(PAUSES.first).await;
                return Ok(());
            }
        }
    }

    fn apply(&mut self, change: Change, cluster: ManagedCluster) -> String {
        let version = cluster.metadata.resource_version.clone();
        let name = cluster.metadata.name.clone();
        match change {
            Change::Deleted => drop(self.managed.clusters.remove(&name)),
            Change::Added | Change::Modified => drop(self.managed.clusters.insert(name, Arc::new(cluster.known()))),
        }
        self.publish();
        version
    }

    /// Decides what follows from a failure. Returns how long to wait before the next try.
    async fn judge(&mut self, failure: HubFailure) -> Duration {
        let verdict = match (&self.purpose, failure.code()) {
            (Purpose::Display, Some(403)) => return self.refused(&failure),
            (Purpose::Display, Some(404)) => Verdict::Absent,
            (Purpose::Location(_), Some(404)) => {
                self.absence.weigh(&self.hub, failure, self.managed.kind.is_some()).await
            }
            _ => Verdict::Failed(failure),
        };
        match verdict {
            Verdict::Absent => self.absent(),
            Verdict::Doubtful(pause) => pause,
            Verdict::Failed(failure) => self.failed(&failure),
        }
    }

    fn absent(&mut self) -> Duration {
        match self.purpose {
            _ if self.managed.kind.is_none() => {}
            Purpose::Display => tracing::info!("the hub no longer has ManagedClusters"),
            Purpose::Location(_) => {
                tracing::warn!("the hub no longer has ManagedClusters: from now on the Secrets' endpoints apply");
            }
        }
        self.forget();
        self.refusals = 0;
        LOOK_AGAIN
    }

    fn refused(&mut self, failure: &HubFailure) -> Duration {
        // The usual case: without `--ocm-integration` the chart grants no such permission.
        tracing::debug!(
            answer = %failure,
            "virtualclusters omits ManagedClusters, because the gateway may not read them"
        );
        self.forget();
        let pause = REFUSED_AGAIN.wait(self.refusals);
        self.refusals = self.refusals.saturating_add(1);
        pause
    }

    fn failed(&mut self, failure: &HubFailure) -> Duration {
        self.absence = Absence::default();
        let consequence = match &self.purpose {
            Purpose::Location(_) if !self.managed.known => {
                "the clusters' endpoints are unknown: not ready until ManagedClusters are read"
            }
            _ => "keeping the last known ManagedClusters",
        };
        tracing::warn!(error = %failure, next_step = absence::next_step(failure), "{consequence}");
        let pause = PAUSES.wait(self.failures);
        self.failures = self.failures.saturating_add(1);
        pause
    }

    fn forget(&mut self) {
        self.first = false;
        self.absence = Absence::default();
        if self.managed.kind.is_some() || !self.managed.known {
            self.managed = Managed { known: true, ..Managed::default() };
            self.publish();
        }
    }

    fn publish(&mut self) {
        self.published.publish(self.managed.clone());
        if let Purpose::Location(unknown) = &mut self.purpose {
            *unknown = None;
        }
    }
}

#[cfg(test)]
mod tests;
