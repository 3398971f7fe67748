//! A Secret of the member that outlives the state directory. It holds the directory's files, under
//! their names, as a klusterlet's `hub-kubeconfig-secret` does. It is read at the start. It is
//! written when a file has changed, and when a check every few minutes finds other content in it.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use hub::{Cause, Requests};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::JoinError;
use super::certificate::Certificate;
use super::state::{AGENT_NAME, CLUSTER_NAME, FILES, StateDirectory, certificate};
use crate::args::SecretName;

/// Label of the Secrets that agents create: `true`.
const LABEL: &str = "cluster.core.oam.dev/agent-state";
/// Time until the agent notices that its Secret was deleted or changed.
const BELIEVED: Duration = Duration::from_mins(5);

/// See the module.
pub struct StateSecret {
    member: Requests,
    secret: SecretName,
    /// The name of the cluster.
    cluster: String,
    hasher: RandomState,
    /// A fingerprint of its known content, and when it was read or written.
    known: Mutex<Option<(u64, Instant)>>,
    /// How long that counts.
    believed: Duration,
}

// === impl StateSecret ===

impl StateSecret {
    pub fn new(member: Requests, secret: SecretName, cluster: String) -> Self {
        Self { member, secret, cluster, hasher: RandomState::new(), known: Mutex::default(), believed: BELIEVED }
    }

    /// Fills the state directory with the Secret's content, unless the local files are as good: a
    /// Secret may be from a backup, or its last write may have failed.
    pub async fn restore(&self, state: &StateDirectory) -> Result<(), JoinError> {
        match self.member.get(&self.path()).await {
            Ok(secret) => {
                self.check(&secret)?;
                let held = files(&secret);
                let ends = |certificate: Option<Certificate>| certificate.map(|certificate| certificate.not_after);
                let local = ends(state.certificate(&self.cluster)?).filter(|ends| *ends > SystemTime::now());
                // An empty Secret was created for us, and counts as none.
                if !held.is_empty() && (local.is_none() || ends(certificate(&held, &self.cluster)) > local) {
                    state.replace(&held)?;
                }
                self.remember(&held);
                Ok(())
            }
            Err(error) if error.is(StatusCode::NOT_FOUND) => Ok(()),
            Err(error) => Err(failed("reading")(error)),
        }
    }

    /// Writes the content of the state directory, unless the Secret already has it.
    pub async fn save(&self, state: &StateDirectory) -> Result<(), JoinError> {
        let files = state.files()?;
        let is_known =
            |known: (u64, Instant)| known.0 == self.hasher.hash_one(&files) && known.1.elapsed() < self.believed;
        if self.known.lock().is_some_and(is_known) {
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
            let is_labelled = secret["metadata"]["labels"][LABEL] == "true";
            if !is_labelled || self::files(&secret) != files {
                secret["data"] = json!(data);
                secret["metadata"]["labels"][LABEL] = "true".into();
                self.member.replace(&self.path(), &secret).await.map_err(failed("writing"))?;
            }
        } else {
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
                "metadata": {"name": self.secret.name, "namespace": self.secret.namespace, "labels": {LABEL: "true"}}});
            self.member.create(&self.collection(), &secret).await.map_err(failed("creating"))?;
        }
        self.remember(&files);
        Ok(())
    }

    /// A Secret of another owner is neither read nor replaced.
    fn check(&self, secret: &Value) -> Result<(), JoinError> {
        if is_own(secret, &self.cluster) {
            return Ok(());
        }
        let SecretName { namespace, name } = &self.secret;
        Err(JoinError::NotOwn { namespace: namespace.clone(), name: name.clone() })
    }

    fn remember(&self, held: &BTreeMap<String, Vec<u8>>) {
        *self.known.lock() = Some((self.hasher.hash_one(held), Instant::now()));
    }

    fn collection(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets", self.secret.namespace)
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.secret.name)
    }
}

/// Whether a Secret belongs to this cluster's agent: by its label, or by content that only a state
/// has, as a klusterlet of the same cluster creates it. An empty Secret was created for us. The
/// label alone only says that it belongs to some agent: a Secret that names another cluster is
/// never ours.
fn is_own(secret: &Value, cluster: &str) -> bool {
    if secret["type"] != "Opaque" {
        return false;
    }
    let files = files(secret);
    let is_ours = secret["metadata"]["labels"][LABEL] == "true" || files.is_empty();
    let is_known = files.keys().all(|key| FILES.contains(&key.as_str())) && files.contains_key(AGENT_NAME);
    let of = files.get(CLUSTER_NAME).map(|name| name.trim_ascii() == cluster.as_bytes());
    is_ours && of.unwrap_or(true) || is_known && of == Some(true)
}

fn files(secret: &Value) -> BTreeMap<String, Vec<u8>> {
    let data = secret["data"].as_object().into_iter().flatten();
    let decoded = |value: &Value| value.as_str().and_then(|text| STANDARD.decode(text).ok());
    data.filter_map(|(name, value)| Some((name.clone(), decoded(value)?))).collect()
}

fn failed(doing: &'static str) -> impl FnOnce(Cause) -> JoinError {
    move |error| JoinError::Secret { doing, error }
}

#[cfg(test)]
mod tests;
