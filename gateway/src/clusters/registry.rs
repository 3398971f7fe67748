//! Registers and removes clusters: sources report Secrets, readers get snapshots.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use api::cluster_name::ClusterName;
use api::secret::{ClusterEndpoint, ClusterSpec, Credential, SecretError, SecretRules, SecretView};
use foldhash::quality::RandomState;
use register::expiry::Expiry;
use telemetry::readiness::NotReady;
use tokio_util::sync::CancellationToken;

use super::cluster::Cluster;
use super::common::Common;
use super::managed::ManagedClusters;
use super::ocm::Ocm;
use super::stamps::Stamps;
use super::{Clusters, Entry, Snapshot};
use crate::metrics::ClusterMetrics;

/// Owns the map that snapshots copy. Used by one source task.
pub struct Registry {
    clusters: HashMap<ClusterName, Entry, RandomState>,
    resource_version: String,
    rules: SecretRules,
    common: Common,
    published: Arc<Clusters>,
    /// Held until the first complete list.
    not_ready: Option<NotReady>,
    /// Set for sources without an API server, whose objects have no versions, UIDs and creation
    /// times.
    stamps: Option<Stamps>,
    unconvertible: BTreeSet<ClusterName>,
    registrations: HashMap<ClusterName, Registration, RandomState>,
    /// Ends of removed registrations, to be cancelled once no request finds their clusters.
    ended: Vec<CancellationToken>,
    /// Set if Open Cluster Management may decide where clusters are.
    ocm: Option<Ocm>,
}

/// The registration by one Secret, across all its changes.
struct Registration {
    uid: String,
    ended: CancellationToken,
}

// === impl Registry ===

impl Registry {
    pub fn new(published: Arc<Clusters>, rules: SecretRules, common: Common, not_ready: NotReady) -> Self {
        Self {
            clusters: HashMap::default(),
            resource_version: "0".to_owned(),
            rules,
            common,
            published,
            not_ready: Some(not_ready),
            stamps: None,
            unconvertible: BTreeSet::new(),
            registrations: HashMap::default(),
            ended: Vec::new(),
            ocm: None,
        }
    }

    /// Takes endpoint and trust from `managed` for clusters that it has.
    #[must_use]
    pub fn located_by(self, managed: Option<Arc<ManagedClusters>>) -> Self {
        Self { ocm: managed.map(Ocm::new), ..self }
    }

    /// The `ManagedCluster`s that decide where clusters are, besides the Secrets.
    pub fn managed(&self) -> Option<Arc<ManagedClusters>> {
        self.ocm.as_ref().map(|ocm| Arc::clone(&ocm.managed))
    }

    /// Rebuilds the clusters with a changed location. Takes effect with the next
    /// [`Registry::publish`]. Returns false if there are none.
    pub fn relocate(&mut self) -> bool {
        let outdated = self.ocm.as_mut().map(Ocm::outdated).unwrap_or_default();
        for secret in &outdated {
            self.apply(&secret.view());
        }
        !outdated.is_empty()
    }

    /// For sources without an API server: replaces the versions, UIDs and creation times that they
    /// report.
    #[must_use]
    pub fn stamping(self) -> Self {
        Self { stamps: Some(Stamps::new()), ..self }
    }

    /// Takes a Secret as it is now. Takes effect with the next [`Registry::publish`].
    pub fn apply(&mut self, view: &SecretView<'_>) {
        let Ok(name) = ClusterName::parse(view.name) else {
            tracing::warn!(secret = view.name, "not a cluster: the name is not a DNS-1123 subdomain");
            return;
        };
        let view = match &mut self.stamps {
            Some(stamps) => stamps.stamped(view),
            None => *view,
        };
        let spec = match &mut self.ocm {
            Some(ocm) => ocm.spec(&view, self.rules),
            None => ClusterSpec::from_secret(&view, self.rules),
        };
        let uid = view.uid.to_owned();
        self.apply_spec(name, &uid, spec);
    }

    /// Registers a cluster whose description cannot be read as a Secret: requests for it fail with
    /// the reason.
    pub fn reject(&mut self, name: &str, reason: &str) {
        let Ok(name) = ClusterName::parse(name) else { return };
        tracing::warn!(cluster = %name, reason, "cluster unusable");
        if let Some(stamps) = &mut self.stamps {
            stamps.unreadable(name.as_str());
        }
        self.unconvertible.insert(name.clone());
        // Its UID cannot be read either.
        let metrics = self.common.metrics.for_cluster(name.shared(), None);
        self.clusters.insert(name, Entry::Invalid { reason: reason.into(), metrics });
    }

    fn apply_spec(&mut self, name: ClusterName, uid: &str, spec: Result<ClusterSpec, SecretError>) {
        let metrics = self.common.metrics.for_cluster(name.shared(), Some(uid));
        // Even for an invalid Secret: a new UID ends the former registration.
        let ended = self.registration(&name, uid);
        let previous = match self.clusters.get(&name) {
            // If one object was deleted and another registered under its name between two reads,
            // they share nothing.
            Some(Entry::Ready(cluster)) if Arc::ptr_eq(cluster.metrics(), &metrics) => Some(Arc::clone(cluster)),
            _ => None,
        };
        if spec.is_ok() {
            self.unconvertible.remove(&name);
        } else {
            self.unconvertible.insert(name.clone());
        }
        let before = previous.as_ref().map(|cluster| &cluster.spec().credential);
        set_expiry(&metrics, before, spec.as_ref().ok().map(|spec| &spec.credential));
        let made = spec.map_err(|error| error.to_string()).and_then(|spec| {
            let life = (Arc::clone(&metrics), ended);
            let made = Cluster::new(spec, previous.as_deref(), life, &self.common);
            made.map_err(|error| error.to_string())
        });
        let entry = match made {
            Ok(cluster) => {
                metrics.set_tunnelled(cluster.spec().endpoint == ClusterEndpoint::ClusterProxy);
                if previous.is_none() {
                    tracing::info!(cluster = %name, endpoint = %cluster.upstream().target().authority, "cluster registered");
                }
                Entry::Ready(Arc::new(cluster))
            }
            Err(reason) => {
                tracing::warn!(cluster = %name, reason, "cluster unusable: correct its Secret");
                Entry::Invalid { reason: reason.into(), metrics }
            }
        };
        self.clusters.insert(name, entry);
    }

    /// The end of the registration by the Secret `uid`. A registration by another Secret with this
    /// name ends.
    fn registration(&mut self, name: &ClusterName, uid: &str) -> CancellationToken {
        if let Some(known) = self.registrations.get(name).filter(|known| known.uid == uid) {
            return known.ended.clone();
        }
        let registration = Registration { uid: uid.to_owned(), ended: CancellationToken::new() };
        let ended = registration.ended.clone();
        self.ended.extend(self.registrations.insert(name.clone(), registration).map(|before| before.ended));
        ended
    }

    /// A Secret is gone.
    pub fn remove(&mut self, name: &str) {
        if let Some(stamps) = &mut self.stamps {
            stamps.forget(name);
        }
        if let Some(ocm) = &mut self.ocm {
            ocm.forget(name);
        }
        self.unconvertible.remove(name);
        self.common.metrics.forget(name);
        if self.clusters.remove(name).is_some() {
            tracing::info!(cluster = name, "cluster removed");
        }
        self.ended.extend(self.registrations.remove(name).map(|registration| registration.ended));
    }

    /// Keeps only the clusters of a complete list.
    pub fn retain(&mut self, names: &std::collections::HashSet<String>) {
        let gone: Vec<_> =
            self.clusters.keys().filter(|name| !names.contains(name.as_str())).map(ToString::to_string).collect();
        for name in gone {
            self.remove(&name);
        }
    }

    pub fn saw_resource_version(&mut self, version: &str) {
        if !version.is_empty() {
            version.clone_into(&mut self.resource_version);
        }
    }

    /// Publishes all changes to requests. With `complete`, a name that is not in the snapshot is
    /// not registered. Without it, a file that was never readable may have the name.
    pub fn publish(&mut self, complete: bool) {
        let invalid = self.clusters.values().filter(|entry| matches!(entry, Entry::Invalid { .. })).count();
        self.common.metrics.set_clusters(self.clusters.len() - invalid, invalid);
        let resource_version = self.stamps.as_ref().map_or_else(|| self.resource_version.clone(), Stamps::version);
        self.published.publish(Snapshot {
            clusters: self.clusters.clone(),
            resource_version,
            listed: true,
            complete,
            unconvertible: self.unconvertible.iter().cloned().collect(),
        });
        // After the snapshot: a request that still found the cluster would dial it again.
        for ended in self.ended.drain(..) {
            ended.cancel();
        }
        // Last: a client that sees the gateway ready must find the clusters.
        self.not_ready = None;
    }
}

/// Sets when a Secret's credential expires, if that is known. An issued credential sets its own
/// expiry, which stays while a program issues the credential.
fn set_expiry(metrics: &ClusterMetrics, before: Option<&Credential>, credential: Option<&Credential>) {
    let ends = match (before, credential) {
        (Some(Credential::Exec(_)), Some(Credential::Exec(_))) => return,
        (_, credential) => credential.map(Expiry::of),
    };
    let seconds = match ends {
        Some(Expiry::At(seconds)) => u64::try_from(seconds).ok(),
        Some(Expiry::Never | Expiry::Unknown) | None => None,
    };
    metrics.credential_expires(seconds.and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds))));
}
