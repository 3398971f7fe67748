//! Reads Secrets with a kubeconfig, chosen by their labels.

use std::sync::Arc;

use register::Rules;
use register::kubeconfig_secret;
use register::reading::{Reading, SecretObject, SecretReference, Waiting};
use serde_json::Value;

use super::{Kind, Reader, first, place};

pub const KIND: Kind = Kind { group: "", name: "Secret", plural: "secrets", versions: &["v1"], is_custom: false };

pub struct Kubeconfigs(pub Arc<Rules>);

// === impl Kubeconfigs ===

impl Reader for Kubeconfigs {
    fn refers_to(&self, object: &Value) -> Vec<SecretReference> {
        let (namespace, name) = place(object);
        vec![SecretReference { namespace: namespace.to_owned(), name: name.to_owned() }]
    }

    fn read(&self, _: &Value, secrets: &[Option<SecretObject>]) -> Reading {
        match first(secrets) {
            Some(secret) => kubeconfig_secret::read(secret, &self.0),
            // The Secret is gone, and the watch will report its deletion.
            None => Reading::Waiting(Waiting::NoKubeconfig),
        }
    }
}
