//! A `ClusterGateway` as the gateway lists it.

use std::collections::BTreeMap;

use api::cluster_name::ClusterName;
use api::health::Health;
use serde::Deserialize;

use super::{Cluster, EndpointType};

/// The fields that are read of an item of the list.
#[derive(Deserialize)]
pub struct Item {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    status: Option<Health>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Deserialize, Default)]
struct Spec {
    #[serde(default)]
    access: Access,
}

#[derive(Deserialize, Default)]
struct Access {
    endpoint: Option<Endpoint>,
    credential: Option<Credential>,
}

#[derive(Deserialize)]
struct Endpoint {
    r#type: String,
    r#const: Option<Const>,
}

#[derive(Deserialize)]
struct Const {
    address: Option<String>,
    insecure: Option<bool>,
}

#[derive(Deserialize)]
pub(super) struct Credential {
    r#type: String,
}

// === impl Item ===

impl Item {
    /// `None` if its name cannot be a cluster's.
    pub fn cluster(self) -> Option<Cluster> {
        let (kind, fixed) = match self.spec.access.endpoint {
            Some(endpoint) => (Some(EndpointType::of(endpoint.r#type)), endpoint.r#const),
            None => (None, None),
        };
        Some(Cluster {
            name: ClusterName::parse(&self.metadata.name).ok()?,
            labels: self.metadata.labels,
            uid: self.metadata.uid,
            endpoint: kind,
            insecure: fixed.as_ref().is_some_and(|fixed| fixed.insecure == Some(true)),
            address: fixed.and_then(|fixed| fixed.address),
            credential: self.spec.access.credential.map(|credential| credential.r#type),
            health: self.status,
        })
    }
}
