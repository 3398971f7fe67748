//! `VirtualCluster`: every cluster, however it was registered, without any credential.
//!
//! Field names, columns and conversion rules are those of the Go cluster-gateway (its
//! `virtualcluster_types.go` and `virtualcluster_client.go`). Two parts differ: metadata that
//! informers need, and labels, which are sorted in Tables.

mod columns;

use std::collections::BTreeMap;

use serde::Serialize;

use self::columns::{NO_ENDPOINT, shown};
use crate::list_options::Selectors;
use crate::managed_cluster::ManagedCluster;
use crate::secret::{
    ALIAS_ANNOTATION, CREDENTIAL_TYPE_LABEL, ClusterEndpoint, ClusterSpec, ENDPOINT_KEY, ENDPOINT_TYPE_LABEL,
    SecretView,
};
use crate::weight;

/// Plural name of the resource.
pub const RESOURCE: &str = "virtualclusters";
/// Name of the cluster for the hub itself.
pub const LOCAL: &str = "local";

/// Label: whether the cluster is the hub itself.
const CONTROL_PLANE_LABEL: &str = "cluster.core.oam.dev/control-plane";
/// The control plane existed before all else: its version never changes, and its uid is the same
/// everywhere.
const LOCAL_VERSION: &str = "1";
const LOCAL_UID: &str = "6c6f6361-6c00-8000-8000-000000000000";
/// Bytes of memory that the labels of a `ManagedCluster` may take before it is accepted: a stranger
/// may create very many.
const HEAVIEST_STRANGERS_LABELS: usize = 4 << 10;

/// One cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualCluster {
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub creation_timestamp: Option<String>,
    /// The source's labels, without those of our group.
    pub labels: BTreeMap<String, String>,
    /// The source has more labels than are kept, so none is: no label selector selects this object.
    labels_are_cut: bool,
    spec: Spec,
}

/// The fields after the metadata.
#[derive(Serialize)]
pub struct Content<'a> {
    spec: &'a Spec,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
struct Spec {
    #[serde(skip_serializing_if = "String::is_empty")]
    alias: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    accepted: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    endpoint: String,
    #[serde(rename = "credential-type", skip_serializing_if = "String::is_empty")]
    credential_type: String,
}

/// Why an object is not a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidVirtualCluster {
    /// The Go cluster-gateway's text, plus the fix.
    #[error(
        "secret is not a valid cluster secret, no credential type found: set the label {CREDENTIAL_TYPE_LABEL} to \
         ServiceAccountToken, X509Certificate or Dynamic"
    )]
    NoCredentialType,
    #[error(
        "secret is not a valid cluster secret, no endpoint found: set the key {ENDPOINT_KEY:?} to the API server's URL"
    )]
    NoEndpoint,
    #[error("managed cluster has no client config: set spec.managedClusterClientConfigs")]
    NoClientConfig,
}

// === impl VirtualCluster ===

impl VirtualCluster {
    /// The hub itself.
    pub fn local() -> Self {
        Self {
            name: LOCAL.to_owned(),
            uid: LOCAL_UID.to_owned(),
            resource_version: LOCAL_VERSION.to_owned(),
            creation_timestamp: None,
            labels: labels(&BTreeMap::new(), true),
            labels_are_cut: false,
            spec: Spec {
                accepted: true,
                endpoint: NO_ENDPOINT.to_owned(),
                credential_type: "Internal".to_owned(),
                ..Spec::default()
            },
        }
    }

    pub fn of_secret(secret: &SecretView<'_>) -> Result<Self, InvalidVirtualCluster> {
        let credential_type =
            secret.labels.get(CREDENTIAL_TYPE_LABEL).ok_or(InvalidVirtualCluster::NoCredentialType)?;
        let written = secret.data.get(ENDPOINT_KEY).map(|written| written.trim_ascii_end()).unwrap_or_default();
        let endpoint = match secret.labels.get(ENDPOINT_TYPE_LABEL) {
            Some(kind) => kind.clone(),
            None => shown(written).to_owned(),
        };
        if endpoint.is_empty() {
            return Err(InvalidVirtualCluster::NoEndpoint);
        }
        Ok(Self {
            name: secret.name.to_owned(),
            uid: secret.uid.to_owned(),
            resource_version: secret.resource_version.to_owned(),
            creation_timestamp: secret.creation_timestamp.map(str::to_owned),
            labels: labels(secret.labels, false),
            labels_are_cut: false,
            spec: Spec {
                alias: secret.annotations.get(ALIAS_ANNOTATION).cloned().unwrap_or_default(),
                accepted: true,
                endpoint,
                credential_type: credential_type.clone(),
            },
        })
    }

    /// The cluster of a Secret that was already parsed.
    pub fn of_spec(spec: &ClusterSpec) -> Self {
        let endpoint = match (spec.labels.get(ENDPOINT_TYPE_LABEL), &spec.endpoint) {
            (Some(kind), _) => kind.clone(),
            (None, ClusterEndpoint::Const(fixed)) => fixed.url.to_string(),
            (None, tunnel @ ClusterEndpoint::ClusterProxy) => tunnel.kind().to_owned(),
        };
        Self {
            name: spec.name.to_string(),
            uid: spec.uid.clone(),
            resource_version: spec.resource_version.clone(),
            creation_timestamp: spec.creation_timestamp.clone(),
            labels: labels(&spec.labels, false),
            labels_are_cut: false,
            spec: Spec {
                alias: spec.alias.clone().unwrap_or_default(),
                accepted: true,
                endpoint,
                credential_type: spec.credential.kind().as_str().to_owned(),
            },
        }
    }

    pub fn of_managed(cluster: &ManagedCluster) -> Result<Self, InvalidVirtualCluster> {
        let metadata = &cluster.metadata;
        if cluster.spec.managed_cluster_client_configs.is_empty() {
            return Err(InvalidVirtualCluster::NoClientConfig);
        }
        let is_accepted = cluster.spec.hub_accepts_client;
        let are_cut =
            metadata.labels_are_cut || (!is_accepted && weight::of_texts(&metadata.labels) > HEAVIEST_STRANGERS_LABELS);
        let known = if are_cut { &BTreeMap::new() } else { &metadata.labels };
        Ok(Self {
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
            creation_timestamp: metadata.creation_timestamp.clone(),
            labels: labels(known, false),
            labels_are_cut: are_cut,
            spec: Spec {
                alias: metadata.annotations.get(ALIAS_ANNOTATION).cloned().unwrap_or_default(),
                accepted: is_accepted,
                endpoint: NO_ENDPOINT.to_owned(),
                credential_type: "ManagedCluster".to_owned(),
            },
        })
    }

    /// The remnant of an object that exists no more or cannot be read.
    pub fn remnant(name: &str, uid: &str, resource_version: &str) -> Self {
        Self {
            name: name.to_owned(),
            uid: uid.to_owned(),
            resource_version: resource_version.to_owned(),
            creation_timestamp: None,
            labels: BTreeMap::new(),
            labels_are_cut: false,
            spec: Spec::default(),
        }
    }

    /// This object with the version of an event: it was deleted, or replaced by something older, at
    /// `version`.
    #[must_use]
    pub fn at(self, version: &str) -> Self {
        Self { resource_version: version.to_owned(), ..self }
    }

    /// Approximate bytes in memory.
    pub fn held(&self) -> usize {
        let Self { name, uid, resource_version, creation_timestamp, labels, spec, .. } = self;
        let labels = weight::of_texts(labels);
        let stamp = creation_timestamp.as_ref().map_or(0, String::len);
        size_of::<Self>() + name.len() + uid.len() + resource_version.len() + stamp + labels + spec.held()
    }

    pub fn is_selected(&self, selectors: &Selectors) -> bool {
        if self.labels_are_cut {
            selectors.matches_name(&self.name) && !selectors.concern_labels()
        } else {
            selectors.matches(&self.name, &self.labels)
        }
    }

    /// The order of lists: the control plane, then the newest first. Ties are ordered by name.
    pub fn order(&self, other: &Self) -> std::cmp::Ordering {
        let key = |one: &Self| (one.name != LOCAL, std::cmp::Reverse(one.creation_timestamp.clone()));
        key(self).cmp(&key(other)).then_with(|| self.name.cmp(&other.name))
    }
}

// === impl Spec ===

impl Spec {
    /// Bytes besides its own size.
    fn held(&self) -> usize {
        self.alias.len() + self.endpoint.len() + self.credential_type.len()
    }
}

/// Omits labels of our group, which describe the registration and not the cluster.
fn labels(source: &BTreeMap<String, String>, control_plane: bool) -> BTreeMap<String, String> {
    let foreign = source.iter().filter(|(key, _)| !key.starts_with(crate::GROUP));
    let mut labels: BTreeMap<_, _> = foreign.map(|(key, value)| (key.clone(), value.clone())).collect();
    labels.insert(CONTROL_PLANE_LABEL.to_owned(), control_plane.to_string());
    labels
}

#[cfg(test)]
mod tests;
