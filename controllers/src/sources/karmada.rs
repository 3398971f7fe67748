//! Karmada: a `Cluster` of its control plane, and the Secrets that it refers to.

use std::sync::Arc;

use futures_util::FutureExt as _;
use kube::Client;
use kube::api::DynamicObject;
use register::{Rules, karmada};

use super::references::References;
use super::{Kind, Read, Reader, Related, keep, with_secrets};
use crate::secrets::Meta;
use crate::wakes::Key;

/// Its API server has it by aggregation, without a definition.
pub const KIND: Kind = Kind {
    group: karmada::GROUP,
    name: karmada::KIND,
    plural: "clusters",
    versions: karmada::VERSIONS,
    is_custom: false,
};
/// Of `spec`: those that are read.
const FIELDS: [&str; 11] = [
    "syncMode",
    "apiEndpoint",
    "secretRef",
    "impersonatorSecretRef",
    "insecureSkipTLSVerification",
    "proxyURL",
    "proxyHeader",
    "region",
    "zone",
    "zones",
    "provider",
];

pub struct Karmada {
    rules: Arc<Rules>,
    references: References,
}

// === impl Karmada ===

impl Karmada {
    pub fn new(rules: Arc<Rules>) -> Self {
        Self { rules, references: References::default() }
    }
}

impl Reader for Karmada {
    fn read<'a>(&'a self, object: &'a DynamicObject, client: &'a Client) -> Read<'a> {
        let read = |cluster: &_, secrets: &[&_]| karmada::read(cluster, secrets, &self.rules);
        with_secrets(object, client, &self.references, karmada::references, read).boxed()
    }

    fn related(&self) -> Option<Related> {
        Some(Related { namespace: Some(karmada::NAMESPACE.to_owned()), labels: None })
    }

    fn of_secret(&self, secret: &Meta) -> Vec<Key> {
        self.references.of(secret)
    }

    fn forget(&self, key: &Key) {
        self.references.remove(key);
    }

    fn prune(&self, object: &mut DynamicObject) {
        keep(object, &FIELDS.map(|field| ["spec", field]));
    }
}
