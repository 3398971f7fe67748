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
use super::state::State;
use crate::args::SecretName;

/// See the module.
pub struct StateSecret {
    member: Requests,
    secret: SecretName,
    hasher: RandomState,
    /// A fingerprint of what it is known to hold.
    known: Mutex<Option<u64>>,
}

// === impl StateSecret ===

impl StateSecret {
    pub fn new(member: Requests, secret: SecretName) -> Self {
        Self { member, secret, hasher: RandomState::new(), known: Mutex::default() }
    }

    /// Fills the state directory with what it holds.
    pub async fn restore(&self, state: &State) -> Result<(), JoinError> {
        match self.member.get(&self.path()).await {
            Ok(secret) => state.replace(&files(&secret))?,
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
            secret["data"] = json!(data);
            self.member.replace(&self.path(), &secret).await.map_err(failed("writing"))?;
        } else {
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
                "metadata": {"name": self.secret.name, "namespace": self.secret.namespace}});
            self.member.create(&self.collection(), &secret).await.map_err(failed("creating"))?;
        }
        *self.known.lock() = Some(self.hasher.hash_one(&files));
        Ok(())
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

fn files(secret: &Value) -> BTreeMap<String, Vec<u8>> {
    let data = secret["data"].as_object().into_iter().flatten();
    let decoded = |value: &Value| value.as_str().and_then(|text| STANDARD.decode(text).ok());
    data.filter_map(|(name, value)| Some((name.clone(), decoded(value)?))).collect()
}

fn failed(doing: &'static str) -> impl FnOnce(RequestError) -> JoinError {
    move |error| JoinError::Secret { doing, error }
}
