//! Open Cluster Management: an accepted `ManagedCluster`, and the token of a
//! `ManagedServiceAccount` in its namespace.

use std::sync::Arc;

use futures_util::FutureExt as _;
use kube::api::DynamicObject;
use kube::{Client, ResourceExt as _};
use register::Rules;
use register::ocm::{self, Reach};
use register::reading::{Reading, SecretReference};

use super::{Kind, Read, Reader, Related, keep, secret};
use crate::calls::value;
use crate::secrets::Meta;
use crate::wakes::Key;

pub const KIND: Kind =
    Kind { group: ocm::GROUP, name: ocm::KIND, plural: "managedclusters", versions: ocm::VERSIONS, is_custom: true };
/// Of `spec`: those that are read.
const FIELDS: [&str; 2] = ["hubAcceptsClient", "managedClusterClientConfigs"];

pub struct Ocm {
    pub rules: Arc<Rules>,
    /// Name of the `ManagedServiceAccount`, and so of its Secret.
    pub credential: String,
    pub reach: Reach,
}

// === impl Ocm ===

impl Reader for Ocm {
    fn read<'a>(&'a self, object: &'a DynamicObject, client: &'a Client) -> Read<'a> {
        async move {
            let cluster = value(object);
            // A no counts at once, whether or not the Secret can be read.
            if !ocm::is_accepted(&cluster) {
                return Ok(ocm::read(&cluster, None, self.reach, &self.rules));
            }
            // A ManagedCluster's namespace is called as it is.
            let reference = SecretReference { namespace: object.name_any(), name: self.credential.clone() };
            Ok(match secret(client, &reference).await?.transpose() {
                Ok(token) => ocm::read(&cluster, token.as_ref(), self.reach, &self.rules),
                Err(refused) => Reading::Refused(refused),
            })
        }
        .boxed()
    }

    fn related(&self) -> Option<Related> {
        let labels = Some(format!("{}=true", ocm::TOKEN_LABEL));
        Some(Related { namespace: None, labels, name: Some(self.credential.clone()) })
    }

    fn of_secret(&self, secret: &Meta) -> Vec<Key> {
        if secret.name_any() != self.credential {
            return Vec::new();
        }
        secret.namespace().map(|cluster| (String::new(), cluster)).into_iter().collect()
    }

    fn prune(&self, object: &mut DynamicObject) {
        keep(object, &FIELDS.map(|field| ["spec", field]));
    }
}
