//! Converts a cluster's Secret into the `clustergateways` that readers see, by this gateway's
//! settings.

use std::sync::Arc;

use api::cluster_gateway::{ClusterGateway, Credentials};
use api::health::Health;
use api::hub_object::SecretObject;
use api::managed_cluster::ManagedCluster;
use api::secret::{ClusterSpec, SecretError, SecretRules};

use super::managed::ManagedClusters;

/// The settings for readers.
#[derive(Clone, Default)]
pub struct View {
    /// What Secrets may contain.
    pub rules: SecretRules,
    pub credentials: Credentials,
    /// Whether reported health is shown (feature gate `HealthinessCheck`).
    pub health: bool,
    /// With `--ocm-integration`: the `ManagedCluster`s that decide endpoint, trust, and absence.
    pub managed: Option<Arc<ManagedClusters>>,
}

/// A cluster, as its Secret says, and the health to report of it.
pub struct ClusterWithHealth {
    pub spec: ClusterSpec,
    pub health: Health,
}

// === impl View ===

impl View {
    pub fn new(rules: SecretRules, credentials: Credentials, health: bool) -> Self {
        Self { rules, credentials, health, managed: None }
    }

    #[must_use]
    pub fn located_by(self, managed: Option<Arc<ManagedClusters>>) -> Self {
        Self { managed, ..self }
    }

    pub fn read(&self, secret: &SecretObject) -> Result<ClusterWithHealth, SecretError> {
        let managed = self.managed(&secret.metadata.name);
        let spec = match &managed {
            Some(managed) => managed.cluster(&secret.view(), self.rules)?,
            None => ClusterSpec::from_secret(&secret.view(), self.rules)?,
        };
        let health = self.health_of(&spec);
        Ok(ClusterWithHealth { spec, health })
    }

    fn managed(&self, name: &str) -> Option<Arc<ManagedCluster>> {
        self.managed.as_ref().and_then(|managed| managed.current().get(name).map(Arc::clone))
    }

    pub fn show<'a>(&self, spec: &'a ClusterSpec, health: Health) -> ClusterGateway<'a> {
        ClusterGateway::new(spec, health, self.credentials)
    }

    /// Health as last reported. Without the gate, not healthy, as in the Go cluster-gateway.
    pub fn health_of(&self, spec: &ClusterSpec) -> Health {
        if !self.health {
            return Health::default();
        }
        match self.managed(spec.name.as_str()) {
            Some(managed) => managed.health(spec.healthy.is_some().then(|| Health::of(spec))),
            None => Health::of(spec),
        }
    }
}
