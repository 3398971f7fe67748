//! Secrets with a kubeconfig in them, chosen by their labels.

use std::sync::Arc;

use futures_util::FutureExt as _;
use kube::api::DynamicObject;
use kube::{Client, ResourceExt as _};
use register::Rules;
use register::kubeconfig_secret;
use register::reading::{Reading, SecretReference, Waiting};

use super::{Kind, Read, Reader, secret};

pub const KIND: Kind = Kind { group: "", name: "Secret", plural: "secrets", versions: &["v1"], is_custom: false };

pub struct Kubeconfigs(pub Arc<Rules>);

// === impl Kubeconfigs ===

impl Reader for Kubeconfigs {
    fn read<'a>(&'a self, object: &'a DynamicObject, client: &'a Client) -> Read<'a> {
        async move {
            let namespace = object.namespace().unwrap_or_default();
            let found = secret(client, &SecretReference { namespace, name: object.name_any() }).await?;
            Ok(match found {
                Some(Ok(secret)) => kubeconfig_secret::read(&secret, &self.0),
                Some(Err(refused)) => Reading::Refused(refused),
                // Its deletion is on its way.
                None => Reading::Waiting(Waiting::NoKubeconfig),
            })
        }
        .boxed()
    }
}
