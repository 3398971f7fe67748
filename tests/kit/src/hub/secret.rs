//! Secrets that describe clusters, built from the parts tests vary.

use base64::Engine as _;
use serde_json::{Map, Value, json};

use crate::pki::Issued;

/// Prefix of the labels of the contract.
const DOMAIN: &str = "cluster.core.oam.dev";

/// A Secret that describes a cluster. Converts to its JSON.
#[derive(Clone, Debug)]
pub struct ClusterSecret(Value);

// === impl ClusterSecret ===

impl ClusterSecret {
    /// A Secret without any credential yet, in `namespace`.
    pub fn new(namespace: &str, name: &str) -> Self {
        let labels = json!({format!("{DOMAIN}/cluster-endpoint-type"): "Const"});
        Self(
            json!({"metadata": {"namespace": namespace, "name": name, "labels": labels}, "type": "Opaque", "data": {}}),
        )
    }

    /// A member behind the tunnel: without an endpoint.
    #[must_use]
    pub fn tunnelled(self) -> Self {
        self.label(&format!("{DOMAIN}/cluster-endpoint-type"), "ClusterProxy")
    }

    /// The URL of the member API server.
    #[must_use]
    pub fn endpoint(self, url: &str) -> Self {
        self.data("endpoint", url)
    }

    /// The root certificate of the member, PEM.
    #[must_use]
    pub fn ca(self, pem: &str) -> Self {
        self.data("ca.crt", pem)
    }

    /// A ServiceAccount token as the credential.
    #[must_use]
    pub fn token(self, token: &str) -> Self {
        self.credential_type("ServiceAccountToken").data("token", token)
    }

    /// A client certificate as the credential.
    #[must_use]
    pub fn certificate(self, identity: &Issued) -> Self {
        self.credential_type("X509Certificate").data("tls.crt", &identity.chain_pem).data("tls.key", &identity.key_pem)
    }

    /// Any credential type, also one that does not exist.
    #[must_use]
    pub fn credential_type(self, kind: &str) -> Self {
        self.label(&format!("{DOMAIN}/cluster-credential-type"), kind)
    }

    /// A label.
    #[must_use]
    pub fn label(self, key: &str, value: &str) -> Self {
        self.set("labels", key, value)
    }

    /// An annotation.
    #[must_use]
    pub fn annotation(self, key: &str, value: &str) -> Self {
        self.set("annotations", key, value)
    }

    /// A data key, to be encoded.
    #[must_use]
    pub fn data(mut self, key: &str, value: impl AsRef<[u8]>) -> Self {
        self.0["data"][key] = base64::engine::general_purpose::STANDARD.encode(value).into();
        self
    }

    fn set(mut self, field: &str, key: &str, value: &str) -> Self {
        let entries = &mut self.0["metadata"][field];
        if entries.is_null() {
            *entries = Map::new().into();
        }
        entries[key] = value.into();
        self
    }
}

impl From<ClusterSecret> for Value {
    fn from(secret: ClusterSecret) -> Self {
        secret.0
    }
}
