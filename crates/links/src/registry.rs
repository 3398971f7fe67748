//! The registry of clusters' links, which also chooses the link of the next stream.
//!
//! One lock protects the links. It is held for microseconds, never across an await, and never while
//! a link is asked for its state; a choice reads only the cluster's few links. A stream's counts
//! are part of its gauge, so the drop of the gauge releases them.

mod choice;
mod count;
mod link;
mod listing;
mod metrics;
mod named;
mod permits;
mod recent;
mod registered;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use foldhash::quality::RandomState;
use net::words::Causes;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tunnel::{ClusterName, Destination, Gauge, Hop, OpenError, Reason, Refusal, Stream};

use self::choice::Attempts;
use self::count::{Counted, dialling};
pub use self::link::Linked;
pub use self::listing::{AgentListing, ClusterListing, LinkListing, NotLinked, StreamListing};
pub use self::metrics::{Ended, Metrics, Outcome};
pub use self::named::{Credential, Named};
use self::permits::Permits;
use self::recent::RecentClusters;
use self::registered::{Cluster, Counts};
use crate::limits::Limits;

/// The links of all clusters. Only the names of recently linked clusters outlive their connections.
#[derive(Debug, Default)]
pub struct Registry(Arc<Core>);

#[derive(Debug, Default)]
struct Core {
    clusters: RwLock<HashMap<ClusterName, Cluster, RandomState>>,
    /// Counts of clusters that have streams but no links: the cluster's next link continues them.
    former: Mutex<HashMap<ClusterName, Weak<Counts>>>,
    permits: Permits,
    recent: Mutex<RecentClusters>,
    limits: Limits,
    metrics: Metrics,
    /// Streams of all clusters, open or being opened.
    streams: AtomicUsize,
    /// Notified when the last stream has ended.
    fewer: Notify,
    draining: AtomicBool,
    next_id: AtomicU64,
    /// Incremented with every change of the links.
    changes: watch::Sender<u64>,
}

// === impl Registry ===

impl Registry {
    pub fn new(limits: Limits, metrics: Metrics) -> Self {
        Self(Arc::new(Core { limits, metrics, ..Core::default() }))
    }

    /// Opens a stream to `to` in `cluster` within `dial_timeout`, on the link with the fewest
    /// streams. Tries another link if that one accepts no stream, refuses it before a dial, or is
    /// lost. A drop of the future cancels the dial. The stream is listed and counted as long as its
    /// gauge exists, so its owner keeps the gauge until the stream has ended.
    pub async fn open(
        &self,
        cluster: &ClusterName,
        to: &Destination,
        dial_timeout: Duration,
    ) -> Result<(Stream, Arc<Gauge>), Refusal> {
        let opened = timeout(dial_timeout, self.try_links(cluster, to)).await;
        opened.unwrap_or_else(|_| Err(no_answer(cluster, to, dial_timeout)))
    }

    /// Clusters with a usable link, sorted by name.
    pub fn linked(&self) -> Vec<ClusterName> {
        let mut clusters = self.clusters();
        clusters.retain(|(_, cluster)| cluster.is_usable());
        clusters.into_iter().map(|(name, _)| name).collect()
    }

    /// Whether `cluster` has a usable link.
    pub fn is_linked(&self, cluster: &ClusterName) -> bool {
        self.cluster(cluster).is_some_and(|cluster| cluster.is_usable())
    }

    /// Changes when a link is added, withdrawn or removed. Subscribe before you read the links.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Completes when `cluster` has a usable link.
    pub async fn until_linked(&self, cluster: &ClusterName) {
        let mut changes = self.changes();
        while !self.is_linked(cluster) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Streams of all clusters, open or being opened.
    pub fn streams(&self) -> usize {
        self.0.streams.load(Ordering::Relaxed)
    }

    /// Accepts no new links and streams from now on.
    pub(crate) fn start_draining(&self) {
        self.0.draining.store(true, Ordering::Release);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.0.draining.load(Ordering::Acquire)
    }

    /// Asks all agents to link elsewhere, and waits for their answers.
    pub(crate) async fn leave_all(&self) {
        let links = self.held(|_| true);
        futures_util::future::join_all(links.iter().map(|held| held.link.leave())).await;
    }

    /// Completes when no streams are left.
    pub(crate) async fn until_idle(&self) {
        loop {
            let fewer = self.0.fewer.notified();
            if self.streams() == 0 {
                return;
            }
            fewer.await;
        }
    }

    /// Whether `cluster` has links here, or had one recently.
    pub fn knows(&self, cluster: &ClusterName) -> bool {
        self.0.clusters.read().contains_key(cluster) || self.0.recent.lock().has(cluster)
    }

    async fn try_links(&self, cluster: &ClusterName, to: &Destination) -> Result<(Stream, Arc<Gauge>), Refusal> {
        if self.is_draining() {
            return Err(Refusal::new(Hop::Server, Reason::Draining, "this tunnel-server is shutting down"));
        }
        let dialling = dialling(&self.0, cluster)?;
        let mut attempts = Attempts::default();
        while let Some(link) = self.choose(cluster, &mut attempts) {
            let counted = Counted::begin(&self.0, &link, to)?;
            match link.open(to).await {
                Ok(stream) => {
                    drop(dialling);
                    return Ok((stream, counted.gauge()));
                }
                Err(OpenError::Refused(refusal)) if !refusal.reason.is_worth_another_try() => return Err(refusal),
                Err(OpenError::Refused(refusal)) => attempts.refused(refusal),
                Err(OpenError::NotSent(why)) => link.passed_over(&why),
                // The agent may have dialled the destination, but no bytes were sent to it.
                Err(OpenError::Lost(why)) => attempts.refused(lost(cluster, &why)),
            }
        }
        Err(attempts.outcome().unwrap_or_else(|| self.no_link(cluster)))
    }

    fn choose(&self, cluster: &ClusterName, attempts: &mut Attempts) -> Option<Arc<registered::RegisteredLink>> {
        attempts.next(&self.cluster(cluster)?)
    }

    /// The current links of `name`.
    fn cluster(&self, name: &ClusterName) -> Option<Cluster> {
        self.0.clusters.read().get(name).cloned()
    }

    /// All clusters and their current links, sorted by name.
    fn clusters(&self) -> Vec<(ClusterName, Cluster)> {
        let clusters = self.0.clusters.read();
        let mut all: Vec<_> = clusters.iter().map(|(name, cluster)| (name.clone(), cluster.clone())).collect();
        drop(clusters);
        all.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        all
    }

    fn no_link(&self, cluster: &ClusterName) -> Refusal {
        let links = self.0.clusters.read().get(cluster).map(|cluster| cluster.links.len());
        if let Some(links) = links {
            let message = format!(
                "none of the {links} links to tunnel-agents of cluster \"{cluster}\" accepts new streams now: they \
                 are leaving, full or silent; retry shortly"
            );
            return Refusal::new(Hop::Server, Reason::NoLink, message);
        }
        if self.knows(cluster) {
            let message = format!(
                "no tunnel-agent of cluster \"{cluster}\" is linked to this tunnel-server now: check that the agent runs in that \
                 cluster, and its log"
            );
            return Refusal::new(Hop::Server, Reason::NoLink, message);
        }
        let message = format!(
            "no tunnel-agent of a cluster \"{cluster}\" has linked to this tunnel-server recently: check that its \
             agent runs with --cluster={cluster} and this server's address"
        );
        Refusal::new(Hop::Server, Reason::UnknownCluster, message)
    }
}

fn no_answer(cluster: &ClusterName, to: &Destination, after: Duration) -> Refusal {
    let message =
        format!("the tunnel-agent of cluster \"{cluster}\" did not report within {after:?} whether it reached {to}");
    Refusal::new(Hop::Server, Reason::AgentTimeout, message)
}

fn lost(cluster: &ClusterName, why: &Causes) -> Refusal {
    let message = format!("the link to the tunnel-agent of cluster \"{cluster}\" was lost while it dialled: {why}");
    Refusal::new(Hop::Server, Reason::NoLink, message)
}

#[cfg(test)]
mod tests;
