//! Cluster API: a `Cluster` and the kubeconfig Secret beside it.

use std::sync::Arc;

use futures_util::FutureExt as _;
use kube::api::DynamicObject;
use kube::{Client, ResourceExt as _};
use register::Rules;
use register::cluster_api;
use register::reading::Reading;

use super::{Kind, Read, Reader, Related, keep, secret};
use crate::calls::value;
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
    fn read<'a>(&'a self, object: &'a DynamicObject, client: &'a Client) -> Read<'a> {
        async move {
            let namespace = object.namespace().unwrap_or_default();
            let found = secret(client, &cluster_api::kubeconfig_secret(&namespace, &object.name_any())).await?;
            Ok(match found.transpose() {
                Ok(secret) => cluster_api::read(&value(object), secret.as_ref(), &self.0),
                Err(refused) => Reading::Refused(refused),
            })
        }
        .boxed()
    }

    fn related(&self) -> Option<Related> {
        Some(Related { namespace: None, labels: Some(cluster_api::CLUSTER_LABEL.to_owned()), name: None })
    }

    /// Of the four Secrets and more that bear a cluster's label, one is looked at.
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
