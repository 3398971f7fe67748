//! `ManagedCluster` of Open Cluster Management (`cluster.open-cluster-management.io/v1`), limited
//! to the fields about a cluster's address and health.
//!
//! With `--ocm-integration`, its client configurations replace the endpoint and the trust of the
//! Secret with the same name. The Secret then only contains the credential.
//!
//! A holder of a bootstrap credential of Open Cluster Management may create one with any name and
//! any address. It is only a request until the administrator accepts it (`spec.hubAcceptsClient`):
//! until then nothing in it counts here.

mod bounded;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

pub use self::bounded::HEAVIEST_LABELS;
use crate::health::Health;
use crate::hub_object::{HubMeta, or_empty};
use crate::secret::{
    CA_KEY, ClusterEndpoint, ClusterSpec, ENDPOINT_KEY, Endpoint, FALLBACKS_KEY, INSECURE_KEY, InvalidEndpoint,
    LEGACY_CA_KEY, MOST_FALLBACKS, SecretError, SecretRules, SecretView, Trust,
};

/// The group of `ManagedCluster`.
pub const GROUP: &str = "cluster.open-cluster-management.io";

/// A registered cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ManagedCluster {
    #[serde(deserialize_with = "bounded::metadata")]
    pub metadata: HubMeta,
    #[serde(deserialize_with = "or_empty")]
    pub spec: Spec,
    #[serde(deserialize_with = "or_empty")]
    pub status: Status,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// Whether an administrator of the hub has accepted the cluster.
    pub hub_accepts_client: bool,
    #[serde(deserialize_with = "bounded::addresses")]
    pub managed_cluster_client_configs: Vec<ClientConfig>,
}

/// One address of the cluster's API server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientConfig {
    pub url: String,
    /// PEM in base64. If empty, the system's roots.
    #[serde(deserialize_with = "or_empty")]
    pub ca_bundle: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Status {
    #[serde(deserialize_with = "bounded::conditions")]
    pub conditions: Vec<Condition>,
}

/// `metav1.Condition`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Condition {
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    pub reason: String,
}

/// The condition that says whether the cluster's agent reports to OCM.
const AVAILABLE: &str = "ManagedClusterConditionAvailable";

// === impl ManagedCluster ===

impl ManagedCluster {
    /// What counts of it, for those who keep many: no more than its name, version and acceptance
    /// before it is accepted, and then no labels and annotations.
    #[must_use]
    pub fn known(self) -> Self {
        let Self { metadata, spec, status } = self;
        let HubMeta { name, uid, resource_version, .. } = metadata;
        let metadata = HubMeta { name, uid, resource_version, ..HubMeta::default() };
        if spec.hub_accepts_client { Self { metadata, spec, status } } else { Self { metadata, ..Self::default() } }
    }

    /// Where the cluster is. `None` unless it is accepted: the registered credential must not go
    /// where its own bearer says.
    pub fn addresses(&self) -> Option<&[ClientConfig]> {
        self.spec.hub_accepts_client.then_some(&*self.spec.managed_cluster_client_configs)
    }

    /// The cluster with the credential in `secret` and the addresses in this object. Without any
    /// address here, or without acceptance, the Secret's own endpoint counts. Members behind a
    /// tunnel are reached through the tunnel, whatever this object has.
    ///
    /// Of several addresses, the first one decides the base path. The others are tried when it
    /// cannot be dialled.
    pub fn cluster(&self, secret: &SecretView<'_>, rules: SecretRules) -> Result<ClusterSpec, SecretError> {
        let Some(addresses) = self.addresses() else {
            return ClusterSpec::from_secret(secret, rules).map_err(|error| match error {
                SecretError::NoEndpoint => SecretError::NotAccepted,
                error => error,
            });
        };
        let Some((first, others)) = addresses.split_first() else {
            return ClusterSpec::from_secret(secret, rules);
        };
        let tunnelled = secret.labels.get(crate::secret::ENDPOINT_TYPE_LABEL).is_some_and(|kind| kind != "Const");
        if tunnelled {
            return ClusterSpec::from_secret(secret, rules);
        }
        Endpoint::parse(first.url.trim(), rules.allow_http).map_err(SecretError::ManagedEndpoint)?;
        let data = first.data(secret.data)?;
        let mut spec = ClusterSpec::from_secret(&SecretView { data: &data, ..*secret }, rules)?;
        if let ClusterEndpoint::Const(fixed) = &mut spec.endpoint {
            fixed.fallbacks =
                others.iter().take(MOST_FALLBACKS).map(|one| one.address(rules)).collect::<Result<_, _>>()?;
        }
        Ok(spec)
    }

    /// The cluster's health. `reported` is the health that a client wrote. OCM's condition precedes
    /// it if the cluster is unavailable, and counts if no health was reported. Without acceptance,
    /// the conditions do not count: a stranger could have written them, and could otherwise make
    /// unrelated clusters look ill or well.
    pub fn health(&self, reported: Option<Health>) -> Health {
        let conditions = if self.spec.hub_accepts_client { &*self.status.conditions } else { &[] };
        let condition = conditions.iter().find(|condition| condition.r#type == AVAILABLE);
        match (condition, reported) {
            (Some(condition), _) if condition.status != "True" => {
                Health { healthy: false, healthy_reason: condition.reason.clone() }
            }
            (_, Some(reported)) => reported,
            (Some(_), None) => Health { healthy: true, healthy_reason: String::new() },
            (None, None) => Health::default(),
        }
    }
}

// === impl ClientConfig ===

impl ClientConfig {
    /// A Secret's data with this endpoint and trust.
    fn data(&self, data: &BTreeMap<String, Vec<u8>>) -> Result<BTreeMap<String, Vec<u8>>, SecretError> {
        let mut data = data.clone();
        data.retain(|key, _| !matches!(key.as_str(), LEGACY_CA_KEY | INSECURE_KEY | FALLBACKS_KEY));
        data.insert(ENDPOINT_KEY.to_owned(), self.url.trim().as_bytes().to_vec());
        // Present but empty means the system's roots, whatever a missing bundle means.
        data.insert(CA_KEY.to_owned(), self.bundle()?);
        Ok(data)
    }

    fn bundle(&self) -> Result<Vec<u8>, SecretError> {
        let bundle = STANDARD.decode(self.ca_bundle.trim()).map_err(|_| SecretError::ManagedCa)?;
        let pem = bundle.is_empty() || crate::secret::is_certificate_bundle(&bundle);
        if pem { Ok(bundle) } else { Err(SecretError::ManagedCa) }
    }

    fn address(&self, rules: SecretRules) -> Result<(Endpoint, Trust), SecretError> {
        let wrong = |error: InvalidEndpoint| SecretError::ManagedEndpoint(error);
        let endpoint = Endpoint::parse(self.url.trim(), rules.allow_http).map_err(wrong)?;
        let bundle = self.bundle()?;
        Ok((endpoint, if bundle.is_empty() { Trust::SystemRoots } else { Trust::Bundle(bundle) }))
    }
}

#[cfg(test)]
mod tests;
