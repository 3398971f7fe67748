//! A Secret of the member that outlives the state directory: the files of that, under their names,
//! as in a klusterlet's `hub-kubeconfig-secret`. Read once, at the start; written when a file has
//! changed.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use hub::{RequestError, Requests};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::JoinError;
use super::state::{AGENT_NAME, CLUSTER_NAME, FILES, State};
use crate::args::SecretName;

/// Label of the Secrets that agents make: `true`.
const LABEL: &str = "cluster.core.oam.dev/agent-state";

/// See the module.
pub struct StateSecret {
    member: Requests,
    secret: SecretName,
    /// The name of the cluster.
    cluster: String,
    hasher: RandomState,
    /// A fingerprint of what it is known to hold.
    known: Mutex<Option<u64>>,
}

// === impl StateSecret ===

impl StateSecret {
    pub fn new(member: Requests, secret: SecretName, cluster: String) -> Self {
        Self { member, secret, cluster, hasher: RandomState::new(), known: Mutex::default() }
    }

    /// Fills the state directory with what it holds.
    pub async fn restore(&self, state: &State) -> Result<(), JoinError> {
        match self.member.get(&self.path()).await {
            Ok(secret) => {
                self.check(&secret)?;
                state.replace(&files(&secret))?;
            }
            Err(error) if error.is(StatusCode::NOT_FOUND) => return Ok(()),
            Err(error) => return Err(failed("reading")(error)),
        }
        self.remember(state)
    }

    /// Writes what the state directory holds, unless it holds that.
    pub async fn save(&self, state: &State) -> Result<(), JoinError> {
        let files = state.files()?;
        if *self.known.lock() == Some(self.hasher.hash_one(&files)) {
            return Ok(());
        }
        let data: BTreeMap<_, _> = files.iter().map(|(name, bytes)| (name, STANDARD.encode(bytes))).collect();
        let existing = match self.member.get(&self.path()).await {
            Ok(existing) => Some(existing),
            Err(error) if error.is(StatusCode::NOT_FOUND) => None,
            Err(error) => return Err(failed("reading")(error)),
        };
        if let Some(mut secret) = existing {
            self.check(&secret)?;
            secret["data"] = json!(data);
            secret["metadata"]["labels"][LABEL] = "true".into();
            self.member.replace(&self.path(), &secret).await.map_err(failed("writing"))?;
        } else {
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
                "metadata": {"name": self.secret.name, "namespace": self.secret.namespace, "labels": {LABEL: "true"}}});
            self.member.create(&self.collection(), &secret).await.map_err(failed("creating"))?;
        }
        *self.known.lock() = Some(self.hasher.hash_one(&files));
        Ok(())
    }

    /// A Secret of somebody else is neither read nor replaced.
    fn check(&self, secret: &Value) -> Result<(), JoinError> {
        if is_own(secret, &self.cluster) {
            return Ok(());
        }
        let SecretName { namespace, name } = &self.secret;
        Err(JoinError::NotOwn { namespace: namespace.clone(), name: name.clone() })
    }

    fn remember(&self, state: &State) -> Result<(), JoinError> {
        *self.known.lock() = Some(self.hasher.hash_one(&state.files()?));
        Ok(())
    }

    fn collection(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets", self.secret.namespace)
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.secret.name)
    }
}

/// Whether a Secret is an agent's: by its label, or by what is in it and in no other, as a
/// klusterlet of the same cluster made it. An empty one was made for us.
fn is_own(secret: &Value, cluster: &str) -> bool {
    if secret["type"] != "Opaque" {
        return false;
    }
    let files = files(secret);
    let is_ours = secret["metadata"]["labels"][LABEL] == "true" || files.is_empty();
    let is_known = files.keys().all(|key| FILES.contains(&key.as_str())) && files.contains_key(AGENT_NAME);
    let of_cluster = files.get(CLUSTER_NAME).is_some_and(|name| name.trim_ascii() == cluster.as_bytes());
    is_ours || is_known && of_cluster
}

fn files(secret: &Value) -> BTreeMap<String, Vec<u8>> {
    let data = secret["data"].as_object().into_iter().flatten();
    let decoded = |value: &Value| value.as_str().and_then(|text| STANDARD.decode(text).ok());
    data.filter_map(|(name, value)| Some((name.clone(), decoded(value)?))).collect()
}

fn failed(doing: &'static str) -> impl FnOnce(RequestError) -> JoinError {
    move |error| JoinError::Secret { doing, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(kind: &str, label: bool, data: &[(&str, &str)]) -> Value {
        let data: BTreeMap<_, _> = data.iter().map(|(key, value)| (*key, STANDARD.encode(value))).collect();
        let labels = if label { json!({LABEL: "true"}) } else { Value::Null };
        json!({"type": kind, "metadata": {"labels": labels}, "data": data})
    }

    #[test]
    fn a_secret_of_somebody_else_is_not_taken() {
        let klusterlet = [("cluster-name", "c1"), ("agent-name", "a"), ("tls.crt", "x"), ("tls.key", "x")];
        let others = [("tls.crt", "x"), ("tls.key", "x")];
        let more = [&klusterlet[..], &[("password", "x")]].concat();
        for (what, secret, is_taken) in [
            ("ours", secret("Opaque", true, &more), true),
            ("one made for us", secret("Opaque", false, &[]), true),
            ("a klusterlet's", secret("Opaque", false, &klusterlet), true),
            ("a klusterlet's that has just begun", secret("Opaque", false, &klusterlet[..2]), true),
            ("another cluster's", secret("Opaque", false, &[("cluster-name", "c2"), ("agent-name", "a")]), false),
            ("a certificate", secret("Opaque", false, &others), false),
            ("with more in it", secret("Opaque", false, &more), false),
            ("a password", secret("Opaque", false, &[("password", "x")]), false),
            ("a token", secret("kubernetes.io/service-account-token", true, &[]), false),
        ] {
            assert_eq!(is_own(&secret, "c1"), is_taken, "{what}");
        }
    }
}
