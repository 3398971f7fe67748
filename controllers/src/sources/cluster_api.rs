//! Reads Cluster API's `Cluster` with its kubeconfig Secret.

use std::sync::Arc;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use register::Rules;
use register::cluster_api;
use register::reading::{Reading, SecretObject, SecretReference};
use serde_json::Value;

use super::{Kind, Reader, Related, first, keep, place};
use crate::secrets::Meta;
use crate::wakes::Key;

pub const KIND: Kind = Kind {
    group: cluster_api::GROUP,
    name: cluster_api::KIND,
    plural: "clusters",
    versions: cluster_api::VERSIONS,

    is_custom: true,
};

pub struct ClusterApi(pub Arc<Rules>);

// === impl ClusterApi ===

impl Reader for ClusterApi {
    fn refers_to(&self, object: &Value) -> Vec<SecretReference> {
        let (namespace, name) = place(object);
        vec![cluster_api::kubeconfig_secret(namespace, name)]
    }

    fn read(&self, object: &Value, secrets: &[Option<SecretObject>]) -> Reading {
        cluster_api::read(object, first(secrets), &self.0)
    }

    fn related(&self) -> Option<Related> {
        Some(Related { namespace: None, labels: Some(cluster_api::CLUSTER_LABEL.to_owned()), name: None })
    }

    /// A cluster's label is on four Secrets or more; only one of them is read.
    fn of_secret(&self, secret: &Meta) -> Vec<Key> {
        let Some(label) = secret.labels().get(cluster_api::CLUSTER_LABEL) else { return Vec::new() };
        let name = secret.name_any();
        let cluster = cluster_api::cluster_of(&name, label);
        cluster.map(|cluster| (secret.namespace().unwrap_or_default(), cluster.to_owned())).into_iter().collect()
    }

    fn prune(&self, object: &mut DynamicObject) {
        keep(object, &[&["spec", "paused"], &["spec", "controlPlaneRef"]]);
    }
}
