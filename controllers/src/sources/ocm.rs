//! Reads Open Cluster Management's accepted `ManagedCluster`s with the token of a
//! `ManagedServiceAccount` in their namespace.

use std::sync::Arc;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use register::Rules;
use register::ocm::{self, Reach};
use register::reading::{Reading, SecretObject, SecretReference};
use serde_json::Value;

use super::{Kind, Reader, Related, first, keep, place};
use crate::secrets::Meta;
use crate::wakes::Key;

pub const KIND: Kind =
    Kind { group: ocm::GROUP, name: ocm::KIND, plural: "managedclusters", versions: ocm::VERSIONS, is_custom: true };
/// Fields of `spec` that are read. Of a cluster that is not accepted, the first alone counts.
const FIELDS: [&str; 2] = ["hubAcceptsClient", "managedClusterClientConfigs"];

pub struct Ocm {
    pub rules: Arc<Rules>,
    /// Name of the `ManagedServiceAccount`, and so of its Secret.
    pub credential: String,
    pub reach: Reach,
}

// === impl Ocm ===

impl Reader for Ocm {
    fn refers_to(&self, object: &Value) -> Vec<SecretReference> {
        // A withdrawn acceptance takes effect at once, even if the Secret cannot be read.
        if !ocm::is_accepted(object) {
            return Vec::new();
        }
        // A ManagedCluster's namespace has its name.
        let (_, name) = place(object);
        vec![SecretReference { namespace: name.to_owned(), name: self.credential.clone() }]
    }

    fn read(&self, object: &Value, secrets: &[Option<SecretObject>]) -> Reading {
        ocm::read(object, first(secrets), self.reach, &self.rules)
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
        let fields = FIELDS.map(|field| ["spec", field]);
        if ocm::is_accepted(&object.data) {
            keep(object, &fields);
        } else {
            // Anybody with a bootstrap credential may create thousands.
            keep(object, &fields[..1]);
            object.metadata.labels = None;
        }
    }
}
