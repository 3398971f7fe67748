//! `KubeFed`: a `KubeFedCluster`, and the Secret with its token.

use std::sync::Arc;

use futures_util::FutureExt as _;
use kube::Client;
use kube::api::DynamicObject;
use register::{Rules, kubefed};

use super::references::References;
use super::{Kind, Read, Reader, Related, keep, with_secrets};
use crate::secrets::Meta;
use crate::wakes::Key;

pub const KIND: Kind = Kind {
    group: kubefed::GROUP,
    name: kubefed::KIND,
    plural: "kubefedclusters",
    versions: kubefed::VERSIONS,

    is_custom: true,
};
/// Of `spec`: those that are read.
const FIELDS: [&str; 5] = ["apiEndpoint", "caBundle", "secretRef", "proxyURL", "disabledTLSValidations"];

pub struct KubeFed {
    rules: Arc<Rules>,
    references: References,
}

// === impl KubeFed ===

impl KubeFed {
    pub fn new(rules: Arc<Rules>) -> Self {
        Self { rules, references: References::default() }
    }
}

impl Reader for KubeFed {
    fn read<'a>(&'a self, object: &'a DynamicObject, client: &'a Client) -> Read<'a> {
        let read = |cluster: &_, secrets: &[&_]| kubefed::read(cluster, secrets, &self.rules);
        with_secrets(object, client, &self.references, kubefed::references, read).boxed()
    }

    fn related(&self) -> Option<Related> {
        Some(Related { namespace: None, labels: None })
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
