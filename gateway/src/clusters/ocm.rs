//! Clusters whose Secret holds the credential alone: where they are is what their `ManagedCluster` says.
//!
//! Secrets are kept, so that a cluster can be made anew when only the other half of what describes it has changed.

use std::collections::HashMap;
use std::sync::Arc;

use api::hub_object::SecretObject;
use api::managed_cluster::ClientConfig;
use api::secret::{ClusterSpec, SecretError, SecretRules, SecretView};

use super::managed::ManagedClusters;

/// The other half, and the Secrets it belongs to.
pub struct Ocm {
    pub managed: Arc<ManagedClusters>,
    kept: HashMap<String, Kept>,
}

struct Kept {
    secret: SecretObject,
    /// The addresses the cluster was made with; `None` if it has no `ManagedCluster`.
    addresses: Option<Vec<ClientConfig>>,
}

// === impl Ocm ===

impl Ocm {
    pub fn new(managed: Arc<ManagedClusters>) -> Self {
        Self { managed, kept: HashMap::new() }
    }

    /// The cluster of a Secret as both halves are now.
    pub fn spec(&mut self, view: &SecretView<'_>, rules: SecretRules) -> Result<ClusterSpec, SecretError> {
        let current = self.managed.current();
        let managed = current.get(view.name);
        let addresses = managed.map(|managed| managed.spec.managed_cluster_client_configs.clone());
        self.kept.insert(view.name.to_owned(), Kept { secret: SecretObject::of(view), addresses });
        managed.map_or_else(|| ClusterSpec::from_secret(view, rules), |managed| managed.cluster(view, rules))
    }

    pub fn forget(&mut self, name: &str) {
        self.kept.remove(name);
    }

    /// Takes out the Secrets of clusters that were made with other addresses than there are now.
    pub fn outdated(&mut self) -> Vec<SecretObject> {
        let current = self.managed.current();
        let now = |name: &str| current.get(name).map(|managed| &managed.spec.managed_cluster_client_configs);
        let outdated = self.kept.extract_if(|name, kept| now(name) != kept.addresses.as_ref());
        outdated.map(|(_, kept)| kept.secret).collect()
    }
}
