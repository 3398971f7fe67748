//! The Secrets of thousands of clusters.

use std::sync::Arc;

use anyhow::Result;
use api::secret::{ClusterEndpoint, ClusterSecret, Credential, Endpoint, Trust};
use hub_tests::hub::SECRET_NAMESPACE;
use serde_json::{Value, json};

use super::{name, token};
use crate::caller::Caller;
use crate::hub_objects;

/// The gateways' ServiceAccount.
const ACCOUNT: &str = "gateway";

/// Where they are, and where they lead.
pub struct Secrets {
    pub endpoint: Endpoint,
    pub namespace: String,
}

/// Makes the CA bundle (PEM) of the cluster with this number.
pub type MakeRoot = Arc<dyn Fn(usize) -> String + Send + Sync>;

/// Objects that let the gateways' account read the Secrets of `namespace`.
pub fn rights(namespace: &str) -> [Value; 2] {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let metadata = json!({"name": ACCOUNT, "namespace": namespace});
    let version = format!("{GROUP}/v1");
    [
        json!({
            "apiVersion": version,
            "kind": "Role",
            "metadata": metadata,
            "rules": [{
                "apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch", "update", "patch"],
            }],
        }),
        json!({
            "apiVersion": version,
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": SECRET_NAMESPACE}],
        }),
    ]
}

// === impl Secrets ===

impl Secrets {
    /// Creates those of `count` clusters.
    pub async fn create(self, hub: &Caller, count: usize, root: MakeRoot) -> Result<()> {
        let path = format!("/api/v1/namespaces/{}/secrets", self.namespace);
        let make = move |number: usize| -> Result<(String, Value)> {
            Ok((path.clone(), self.document(number, &root(number))?))
        };
        hub_objects::create(hub, count, Arc::new(make)).await
    }

    fn document(&self, number: usize, root: &str) -> Result<Value> {
        let endpoint = ClusterEndpoint::at(self.endpoint.clone());
        let credential = Credential::Token(token(number).into());
        let secret = ClusterSecret::new(endpoint, Trust::Bundle(root.into()), credential);
        Ok(secret.document(Some(&self.namespace), &name(number))?)
    }
}
