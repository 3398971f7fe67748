//! A cluster's Secret as readers of `clustergateways` see it, by this gateway's settings.

use api::cluster_gateway::{ClusterGateway, Credentials};
use api::health::Health;
use api::hub_object::SecretObject;
use api::secret::{ClusterSpec, SecretError, SecretRules};

use crate::args::Gates;

/// What readers get to see.
#[derive(Debug, Clone, Copy, Default)]
pub struct View {
    /// What Secrets may say.
    pub rules: SecretRules,
    pub credentials: Credentials,
    /// Whether reported health is told (feature gate `HealthinessCheck`).
    pub health: bool,
}

/// A Secret that is a cluster.
pub struct Seen {
    pub spec: ClusterSpec,
    pub health: Health,
}

// === impl View ===

impl View {
    pub fn new(rules: SecretRules, expose_credentials: bool, gates: Gates) -> Self {
        let credentials = if expose_credentials { Credentials::Exposed } else { Credentials::Redacted };
        Self { rules, credentials, health: gates.healthiness_check }
    }

    pub fn read(&self, secret: &SecretObject) -> Result<Seen, SecretError> {
        Ok(self.seen(ClusterSpec::from_secret(&secret.view(), self.rules)?))
    }

    pub fn seen(&self, spec: ClusterSpec) -> Seen {
        let health = self.health_of(&spec);
        Seen { spec, health }
    }

    pub fn show<'a>(&self, spec: &'a ClusterSpec, health: Health) -> ClusterGateway<'a> {
        ClusterGateway::new(spec, health, self.credentials)
    }

    /// As last reported; without the gate not healthy, as the incumbent.
    pub fn health_of(&self, spec: &ClusterSpec) -> Health {
        if self.health { Health::of(spec) } else { Health::default() }
    }
}
