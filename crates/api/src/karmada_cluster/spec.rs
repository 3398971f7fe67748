//! `spec` of a Cluster (`pkg/apis/cluster/v1alpha1/types.go`), and the part that a cluster's Secret
//! contains in its own keys and labels.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::text::Text;
use crate::hub_object::or_empty;
use crate::karmada::{PROVIDER_LABEL, REGION_LABEL, ZONE_DELIMITER, ZONE_LABEL};
use crate::secret::{ClusterEndpoint, ClusterSpec, Trust};

/// Karmada's controllers write to the member.
pub(super) const PUSH: &str = "Push";
/// The member's agent fetches from Karmada.
pub(super) const PULL: &str = "Pull";

/// The fields in the order of the Go type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    #[serde(deserialize_with = "or_empty", skip_serializing_if = "String::is_empty")]
    pub id: String,
    #[serde(deserialize_with = "or_empty", skip_serializing_if = "String::is_empty")]
    pub sync_mode: String,
    #[serde(deserialize_with = "or_empty", skip_serializing_if = "String::is_empty")]
    pub api_endpoint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impersonator_secret_ref: Option<SecretRef>,
    #[serde(
        rename = "insecureSkipTLSVerification",
        deserialize_with = "or_empty",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub insecure: bool,
    #[serde(rename = "proxyURL", deserialize_with = "or_empty", skip_serializing_if = "String::is_empty")]
    pub proxy_url: String,
    /// Never shown, because it may be a credential.
    #[serde(deserialize_with = "or_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub proxy_header: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_empty", skip_serializing_if = "String::is_empty")]
    pub provider: String,
    #[serde(deserialize_with = "or_empty", skip_serializing_if = "String::is_empty")]
    pub region: String,
    #[serde(deserialize_with = "or_empty", skip_serializing_if = "String::is_empty")]
    pub zone: String,
    #[serde(deserialize_with = "or_empty", skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<String>,
    #[serde(deserialize_with = "or_empty", skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// As it was sent: nothing here schedules by it.
    #[serde(deserialize_with = "Text::array", skip_serializing_if = "Text::is_none")]
    pub resource_models: Text,
}

/// The name and namespace of a Secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretRef {
    #[serde(deserialize_with = "or_empty")]
    pub namespace: String,
    #[serde(deserialize_with = "or_empty")]
    pub name: String,
}

/// `v1.Taint`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    #[serde(deserialize_with = "or_empty")]
    pub key: String,
    #[serde(deserialize_with = "or_empty", skip_serializing_if = "String::is_empty")]
    pub value: String,
    #[serde(deserialize_with = "or_empty")]
    pub effect: String,
    /// RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_added: Option<String>,
}

/// The fields' names, to detect unknown ones.
pub(super) const FIELDS: &[&str] = &[
    "id",
    "syncMode",
    "apiEndpoint",
    "secretRef",
    "impersonatorSecretRef",
    "insecureSkipTLSVerification",
    "proxyURL",
    "proxyHeader",
    "provider",
    "region",
    "zone",
    "zones",
    "taints",
    "resourceModels",
];

// === impl Spec ===

impl Spec {
    /// The spec that the Secret yields without Karmada's annotation.
    pub(super) fn said(cluster: &ClusterSpec) -> Self {
        let (mode, endpoint, proxy) = match &cluster.endpoint {
            ClusterEndpoint::Const(fixed) => (PUSH, fixed.url.to_string(), fixed.proxy.as_ref()),
            ClusterEndpoint::ClusterProxy => (PULL, String::new(), None),
        };
        let label = |key: &str| cluster.labels.get(key).cloned().unwrap_or_default();
        let zones = label(ZONE_LABEL);
        Self {
            sync_mode: mode.to_owned(),
            api_endpoint: endpoint,
            insecure: cluster.trust == Trust::Insecure,
            proxy_url: proxy.map(crate::secret::ProxyUrl::redacted).unwrap_or_default(),
            provider: label(PROVIDER_LABEL),
            region: label(REGION_LABEL),
            zones: zones.split(ZONE_DELIMITER).filter(|zone| !zone.is_empty()).map(str::to_owned).collect(),
            ..Self::default()
        }
    }

    /// The fields of this spec that differ from `said`.
    pub(super) fn beyond(&self, said: &Self) -> Self {
        let kept = |own: &String, said: &String| if own == said { String::new() } else { own.clone() };
        Self {
            sync_mode: kept(&self.sync_mode, &said.sync_mode),
            provider: kept(&self.provider, &said.provider),
            region: kept(&self.region, &said.region),
            zones: if self.zones == said.zones { Vec::new() } else { self.zones.clone() },
            api_endpoint: String::new(),
            insecure: false,
            proxy_url: String::new(),
            proxy_header: BTreeMap::new(),
            zone: String::new(),
            ..self.clone()
        }
    }

    /// Completes a result of [`Spec::beyond`] with the Secret's own spec.
    pub(super) fn over(self, said: Self) -> Self {
        let or = |own: String, said: String| if own.is_empty() { said } else { own };
        Self {
            sync_mode: or(self.sync_mode, said.sync_mode),
            provider: or(self.provider, said.provider),
            region: or(self.region, said.region),
            zones: if self.zones.is_empty() { said.zones } else { self.zones },
            api_endpoint: said.api_endpoint,
            insecure: said.insecure,
            proxy_url: said.proxy_url,
            proxy_header: BTreeMap::new(),
            zone: String::new(),
            ..self
        }
    }

    /// Whether it reaches its member in another way than `other`: another address, mode or
    /// credential.
    pub fn reaches_otherwise(&self, other: &Self) -> bool {
        let parts = |spec: &Self| (spec.sync_mode == PULL && spec.api_endpoint.is_empty(), spec.insecure);
        parts(self) != parts(other)
            || self.api_endpoint != other.api_endpoint
            || self.proxy_url != other.proxy_url
            || !self.proxy_header.is_empty()
            || self.secret_ref != other.secret_ref
            || self.impersonator_secret_ref != other.impersonator_secret_ref
    }

    /// `Canonicalize` of upstream's strategy (`pkg/apis/cluster/mutation`). `now` is RFC 3339 with
    /// whole seconds.
    pub(super) fn canonicalize(&mut self, now: &str) {
        let unstamped = |taint: &&mut Taint| taint.effect == "NoExecute" && taint.time_added.is_none();
        self.taints.iter_mut().filter(unstamped).for_each(|taint| taint.time_added = Some(now.to_owned()));
        if !self.zone.is_empty() && self.zones.is_empty() {
            self.zones.push(std::mem::take(&mut self.zone));
        }
    }
}
