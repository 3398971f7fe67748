//! Reads objects of Karmada and `KubeFed`, which refer to Secrets by name.

use std::sync::Arc;

use kube::api::DynamicObject;
use register::reading::{Reading, SecretObject, SecretReference};
use register::{Rules, karmada, kubefed};
use serde_json::Value;

use super::references::References;
use super::{Kind, Reader, Related, keep, place};
use crate::secrets::Meta;
use crate::wakes::Key;

/// The rules of one such kind.
#[derive(Debug, Clone, Copy)]
pub struct Referring {
    /// Fields of `spec` that are read.
    pub fields: &'static [&'static str],
    /// Namespace of its Secrets, if all are in one.
    pub namespace: Option<&'static str>,
    pub references: fn(&Value) -> Vec<SecretReference>,
    pub read: fn(&Value, &[&SecretObject], &Rules) -> Reading,
}

/// Karmada's `Cluster`. An aggregated API server serves it, so it has no definition.
pub const KARMADA_KIND: Kind = Kind {
    group: karmada::GROUP,
    name: karmada::KIND,
    plural: "clusters",
    versions: karmada::VERSIONS,
    is_custom: false,
};

/// Refers to the Secrets of its token and of its impersonator.
pub const KARMADA: Referring = Referring {
    fields: &[
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
    ],
    namespace: Some(karmada::NAMESPACE),
    references: karmada::references,
    read: karmada::read,
};

/// The `KubeFedCluster` of `KubeFed`.
pub const KUBEFED_KIND: Kind = Kind {
    group: kubefed::GROUP,
    name: kubefed::KIND,
    plural: "kubefedclusters",
    versions: kubefed::VERSIONS,
    is_custom: true,
};

/// Refers to the Secret of its token.
pub const KUBEFED: Referring = Referring {
    fields: &["apiEndpoint", "caBundle", "secretRef", "proxyURL", "disabledTLSValidations"],
    namespace: None,
    references: kubefed::references,
    read: kubefed::read,
};

pub struct ReferringReader {
    kind: Referring,
    rules: Arc<Rules>,
    references: References,
}

// === impl ReferringReader ===

impl ReferringReader {
    pub fn new(kind: Referring, rules: Arc<Rules>) -> Self {
        Self { kind, rules, references: References::default() }
    }
}

impl Reader for ReferringReader {
    /// Stores the references in the index.
    fn refers_to(&self, object: &Value) -> Vec<SecretReference> {
        let secrets = (self.kind.references)(object);
        let (namespace, name) = place(object);
        // Before the Secrets are read, so that a change in between wakes the object again.
        self.references.put(&(namespace.to_owned(), name.to_owned()), &secrets);
        secrets
    }

    fn read(&self, object: &Value, secrets: &[Option<SecretObject>]) -> Reading {
        (self.kind.read)(object, &secrets.iter().flatten().collect::<Vec<_>>(), &self.rules)
    }

    fn related(&self) -> Option<Related> {
        Some(Related { namespace: self.kind.namespace.map(str::to_owned), labels: None, name: None })
    }

    fn of_secret(&self, secret: &Meta) -> Vec<Key> {
        self.references.of(secret)
    }

    fn forget(&self, key: &Key) {
        self.references.remove(key);
    }

    fn retain(&self, is_there: &dyn Fn(&Key) -> bool) {
        self.references.retain(is_there);
    }

    fn prune(&self, object: &mut DynamicObject) {
        let paths: Vec<_> = self.kind.fields.iter().map(|field| ["spec", field]).collect();
        keep(object, &paths);
    }
}
