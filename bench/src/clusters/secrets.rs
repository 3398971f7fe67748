//! Writing thousands of Secrets: as many requests at a time as a hub takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use api::secret::{ClusterEndpoint, ClusterSecret, Credential, Endpoint, Trust};
use http::Method;
use http::header::{CONTENT_TYPE, HeaderValue};
use hub_tests::hub::SECRET_NAMESPACE;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{name, token};
use crate::caller::Caller;

/// To the hub.
const CONNECTIONS: usize = 4;
/// At a time on each connection.
const REQUESTS: usize = 16;
/// Of the gateways' ServiceAccount.
const ACCOUNT: &str = "gateway";

/// Where they are, and where they lead.
pub struct Secrets {
    pub endpoint: Endpoint,
    pub namespace: String,
}

/// Makes the PEM of what the cluster with this number is trusted by.
pub type MakeRoot = Arc<dyn Fn(usize) -> String + Send + Sync>;

/// What lets the gateways' account read the Secrets of `namespace`.
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
        let (secrets, next) = (Arc::new(self), Arc::new(AtomicUsize::new(0)));
        let mut workers = JoinSet::new();
        for _ in 0..CONNECTIONS {
            let connection = hub.connect().await?;
            for _ in 0..REQUESTS {
                let (connection, hub) = (connection.clone(), hub.clone());
                let (secrets, next, root) = (Arc::clone(&secrets), Arc::clone(&next), Arc::clone(&root));
                workers.spawn(async move {
                    let path = format!("/api/v1/namespaces/{}/secrets", secrets.namespace);
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= count {
                            return anyhow::Ok(());
                        }
                        let body = serde_json::to_vec(&secrets.document(number, &root(number))?)?;
                        let mut request = hub.request(Method::POST, &path, body.into())?;
                        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                        hub.ask(&connection, request).await?;
                    }
                });
            }
        }
        while let Some(ended) = workers.join_next().await {
            ended??;
        }
        Ok(())
    }

    fn document(&self, number: usize, root: &str) -> Result<Value> {
        let endpoint = ClusterEndpoint::at(self.endpoint.clone());
        let credential = Credential::Token(token(number).into());
        let secret = ClusterSecret::new(endpoint, Trust::Bundle(root.into()), credential);
        Ok(secret.document(Some(&self.namespace), &name(number))?)
    }
}
