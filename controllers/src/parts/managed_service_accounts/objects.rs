//! The part's reads and writes on the hub. Each write names the version that it replaces, so that
//! it overwrites no other write.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ApiResource, DynamicObject, Patch};
use register::managed_service_account::{Account, KIND, LABEL};
use register::reading::SecretObject;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use crate::calls::{CONFLICT, NOT_FOUND, creating, deleting, merging, value};
use crate::parts::hub_calls::{CallError, LeaderClient, found};
use crate::raw;

const TOKEN: &str = "token";
const CA: &str = "ca.crt";

pub struct Objects {
    hub: LeaderClient,
    accounts: ApiResource,
}

/// An existing Secret.
pub struct HeldSecret {
    pub secret: SecretObject,
    uid: String,
    version: String,
    keys: Vec<String>,
}

/// A failed call. It is tried again.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    #[error("cannot {0}: it changed meanwhile")]
    Changed(&'static str),
    #[error("cannot {0}: the Secret cannot be read: {1}")]
    Unreadable(&'static str, register::Refused),
    /// The hub's message names objects and fields, never values.
    #[error("cannot {0}: {1}")]
    Call(&'static str, #[source] CallError),
}

// === impl Objects ===

impl Objects {
    pub fn new(hub: LeaderClient, accounts: ApiResource) -> Self {
        Self { hub, accounts }
    }

    fn accounts(&self, account: &Account) -> Api<DynamicObject> {
        Api::namespaced_with(self.hub.client.clone(), &account.namespace, &self.accounts)
    }

    /// Reads the Secret with the account's name, each time anew: no token is kept.
    pub async fn secret(&self, account: &Account) -> Result<Option<HeldSecret>, HubError> {
        const WHAT: &str = "read the token's Secret";
        let resource = ApiResource::erase::<Secret>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(self.hub.client.clone(), &account.namespace, &resource);
        let answer = self.hub.read(api.get_opt(&account.name)).await;
        let Some(object) = answer.map_err(|error| failed(WHAT, error))? else { return Ok(None) };
        let value = value(&object);
        let keys = value["data"].as_object().into_iter().flat_map(|data| data.keys().cloned()).collect();
        let secret = SecretObject::read(&value).map_err(|refused| HubError::Unreadable(WHAT, refused))?;
        let (uid, version) = (object.metadata.uid, object.metadata.resource_version);
        Ok(Some(HeldSecret { secret, uid: uid.unwrap_or_default(), version: version.unwrap_or_default(), keys }))
    }

    /// Replaces `held`, or creates the Secret, in the format of upstream's agent.
    pub async fn put_secret(
        &self,
        account: &Account,
        held: Option<&HeldSecret>,
        (authority, token): (&str, &SecretString),
    ) -> Result<(), HubError> {
        const WHAT: &str = "write the token's Secret";
        let api: Api<Secret> = Api::namespaced(self.hub.client.clone(), &account.namespace);
        let data = |text: &str| ByteString(text.as_bytes().to_vec());
        let mut document = json!({
            "metadata": {
                "name": account.name, "namespace": account.namespace, "labels": {LABEL: "true"},
                "ownerReferences": [{
                    "apiVersion": account.api_version, "kind": KIND, "name": account.name, "uid": account.uid}],
            },
            "data": {CA: data(authority), TOKEN: data(token.expose_secret())},
        });
        let Some(held) = held else {
            document["type"] = "Opaque".into();
            let secret: Secret = serde_json::from_value(document).map_err(|_| HubError::Changed(WHAT))?;
            let created = self.hub.write(api.create(&creating(), &secret)).await;
            return created.map(drop).map_err(|error| failed(WHAT, error));
        };
        document["metadata"]["uid"] = held.uid.as_str().into();
        document["metadata"]["resourceVersion"] = held.version.as_str().into();
        for other in held.keys.iter().filter(|key| ![CA, TOKEN].contains(&key.as_str())) {
            document["data"][other] = Value::Null;
        }
        let written = self.hub.write(raw::meta::patch(&api, &account.name, &merging(), &Patch::Merge(&document))).await;
        written.map(drop).map_err(|error| failed(WHAT, error))
    }

    /// Sets our finalizer, or removes it.
    pub async fn hold(&self, account: &mut Account, is_held: bool) -> Result<(), HubError> {
        const WHAT: &str = "write the finalizers";
        let document = json!({"metadata": {
            "uid": account.uid, "resourceVersion": account.version, "finalizers": account.finalizers(is_held)}});
        let api = self.accounts(account);
        match self.hub.merge(&api, &account.name, &document).await {
            Ok(written) => {
                account.version = written.metadata.resource_version.unwrap_or_default();
                Ok(())
            }
            Err(error) if error.is(NOT_FOUND) && !is_held => Ok(()),
            Err(error) => Err(failed(WHAT, error)),
        }
    }

    pub async fn put_status(&self, account: &Account, status: &Value) -> Result<(), HubError> {
        let document = json!({"metadata": {"uid": account.uid, "resourceVersion": account.version}, "status": status});
        let written = self.hub.merge_status(&self.accounts(account), &account.name, &document).await;
        written.map(drop).map_err(|error| failed("write the status", error))
    }

    /// Deletes a `ManagedServiceAccount`, but not a later one with its name.
    pub async fn delete(&self, account: &Account) -> Result<(), HubError> {
        let parameters = deleting(&account.uid, None);
        let api = self.accounts(account);
        let deleted = found(self.hub.write(api.delete(&account.name, &parameters)).await);
        deleted.map(drop).map_err(|error| failed("delete it", error))
    }
}

fn failed(what: &'static str, error: CallError) -> HubError {
    if error.is(CONFLICT) { HubError::Changed(what) } else { HubError::Call(what, error) }
}
