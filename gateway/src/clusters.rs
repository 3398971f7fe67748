//! The known member clusters: one immutable snapshot, replaced as a whole on every change.
//!
//! A request takes the snapshot that is current when it arrives, and never waits. One owner (a
//! source task) edits a copy and publishes it.

mod cluster;
mod common;
mod credential;
pub mod directory;
mod dynamic;
pub mod files;
pub mod karmada_upstream;
pub mod kubeconfig;
#[cfg(test)]
mod lines;
pub mod managed;
mod ocm;
mod registry;
pub mod rights;
pub mod rules_review;
pub mod second_look;
mod stamps;
mod target;
mod view;
pub mod watch;

use std::collections::HashMap;
use std::sync::Arc;

use api::cluster_name::ClusterName;
use arc_swap::ArcSwap;
use foldhash::quality::RandomState;
use net::tls::client;
use net::tls::keypair::KeyPairError;
use tokio::sync::watch as watch_channel;

pub use self::cluster::Cluster;
pub use self::common::{Common, Issuing, IssuingOptions};
pub use self::credential::CredentialLease;
pub use self::dynamic::NotIssued;
pub use self::karmada_upstream::KarmadaUpstream;
pub use self::registry::Registry;
pub use self::second_look::SecondLook;
pub use self::view::{ClusterWithHealth, View};
use crate::metrics::ClusterMetrics;

/// All clusters at one moment.
#[derive(Default)]
pub struct Snapshot {
    clusters: HashMap<ClusterName, Entry, RandomState>,
    /// `metadata.resourceVersion` of a list of this snapshot.
    resource_version: String,
    /// The first list has arrived.
    listed: bool,
    /// The snapshot is complete: a name that is not in it is not registered.
    complete: bool,
    /// Names of Secrets that do not describe a cluster, sorted.
    unconvertible: Arc<[ClusterName]>,
}

/// A registered name with a usable Secret or an invalid one.
#[derive(Clone)]
pub enum Entry {
    Ready(Arc<Cluster>),
    Invalid {
        /// Why the Secret cannot be used, with the key at fault and the remedy.
        reason: Arc<str>,
        /// Counts failed requests for this name.
        metrics: Arc<ClusterMetrics>,
    },
}

/// Why there is no cluster for a request.
#[derive(Debug)]
pub enum LookupError {
    /// The first list of Secrets has not arrived yet.
    Unknown,
    /// Known not to be registered.
    Absent,
    /// Registered, but unusable for this reason.
    Invalid(Arc<str>),
    /// The hub has the Secret, but the watch did not deliver it in time.
    Late,
    /// Not in the snapshot, and the hub did not answer whether it has the Secret.
    Unanswered,
}

/// Why a well-formed specification makes no usable cluster. Texts name the Secret's key.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error("data key \"endpoint\": host or base path is not valid in a URL")]
    Endpoint,
    #[error("data key \"tls-server-name\" (or the endpoint's host) is not a DNS name or IP address: {0:?}")]
    ServerName(String),
    #[error("data key \"ca.crt\": {0}")]
    Trust(#[from] client::TrustError),
    #[error("data keys \"tls.crt\" and \"tls.key\": {0}")]
    KeyPair(#[from] KeyPairError),
    #[error("data key \"token\" cannot be sent in a header")]
    Token,
    #[error(
        "it is behind the tunnel (endpoint type ClusterProxy), and this gateway has none: start the gateway with --proxy-host (tunnel-servers) or --tunnel-listen (embedded)"
    )]
    NoTunnel,
    #[error("data key \"proxy-url\": {0}: give the proxy's CA by --proxy-ca-file")]
    ProxyTrust(client::TrustError),
}

/// The current snapshot, for readers.
#[derive(Default)]
pub struct Clusters {
    current: ArcSwap<Snapshot>,
    changed: watch_channel::Sender<()>,
}

// === impl Clusters ===

impl Clusters {
    /// The cluster to send a request to.
    pub fn get(&self, name: &ClusterName) -> Result<Arc<Cluster>, LookupError> {
        self.current.load().get(name)
    }

    /// The metrics of a registered name, usable or not.
    pub fn metrics(&self, name: &ClusterName) -> Option<Arc<ClusterMetrics>> {
        self.current.load().clusters.get(name).map(|entry| Arc::clone(entry.metrics()))
    }

    /// Whether the cluster that counts in `metrics` is still the one registered under `name`.
    pub fn is_current(&self, name: &ClusterName, metrics: &Arc<ClusterMetrics>) -> bool {
        self.metrics(name).is_some_and(|now| Arc::ptr_eq(&now, metrics))
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Notifies of every new snapshot.
    pub fn subscribe(&self) -> watch_channel::Receiver<()> {
        self.changed.subscribe()
    }

    fn publish(&self, snapshot: Snapshot) {
        self.current.store(Arc::new(snapshot));
        self.changed.send_replace(());
    }
}

// === impl Entry ===

impl Entry {
    fn metrics(&self) -> &Arc<ClusterMetrics> {
        match self {
            Self::Ready(cluster) => cluster.metrics(),
            Self::Invalid { metrics, .. } => metrics,
        }
    }
}

// === impl Snapshot ===

impl Snapshot {
    fn get(&self, name: &ClusterName) -> Result<Arc<Cluster>, LookupError> {
        match self.clusters.get(name) {
            Some(Entry::Ready(cluster)) => Ok(Arc::clone(cluster)),
            Some(Entry::Invalid { reason, .. }) => Err(LookupError::Invalid(Arc::clone(reason))),
            // After "no such cluster", clients forget the objects they track there. So it is
            // returned only when it is certain.
            None if !self.complete => Err(LookupError::Unknown),
            None => Err(LookupError::Absent),
        }
    }

    /// The usable clusters, ordered by name.
    pub fn ready(&self) -> Vec<&Arc<Cluster>> {
        let mut ready: Vec<_> = self
            .clusters
            .values()
            .filter_map(|entry| match entry {
                Entry::Ready(cluster) => Some(cluster),
                Entry::Invalid { .. } => None,
            })
            .collect();
        ready.sort_by(|a, b| a.name().cmp(b.name()));
        ready
    }

    pub fn resource_version(&self) -> &str {
        &self.resource_version
    }

    /// Names of Secrets that have no form as a cluster.
    pub fn unconvertible(&self) -> impl Iterator<Item = &ClusterName> {
        self.unconvertible.iter()
    }

    pub fn is_listed(&self) -> bool {
        self.listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    #[test]
    fn a_name_that_is_registered_again_is_another_cluster() {
        let all = Metrics::register(&mut prometheus_client::registry::Registry::default());
        let (clusters, name) = (Clusters::default(), ClusterName::parse("c1").unwrap());
        let register = |owner| {
            let metrics = all.for_cluster(name.shared(), Some(owner));
            let entry = Entry::Invalid { reason: "no token".into(), metrics: Arc::clone(&metrics) };
            let clusters_now = HashMap::from_iter([(name.clone(), entry)]);
            clusters.publish(Snapshot { clusters: clusters_now, ..Snapshot::default() });
            metrics
        };
        let first = register("u-1");
        assert!(clusters.is_current(&name, &first));
        let next = register("u-2");
        assert!(clusters.is_current(&name, &next) && !clusters.is_current(&name, &first));
        clusters.publish(Snapshot::default());
        assert!(!clusters.is_current(&name, &next));
    }
}
