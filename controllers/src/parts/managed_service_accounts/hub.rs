//! What the part reads and writes on the hub. Each write says which version it replaces: who wrote
//! meanwhile is not overwritten.

use hub::Cause;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch};
use register::managed_service_account::{Account, KIND, LABEL};
use register::reading::SecretObject;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::calls::{CONFLICT, NOT_FOUND, creating, deleting, is, merging, value};
use crate::term::{MayWrite, NotLeading, WITHIN, within};

const TOKEN: &str = "token";
const CA: &str = "ca.crt";

pub struct Hub {
    client: Client,
    accounts: ApiResource,
    may_write: MayWrite,
}

/// A Secret that is there.
pub struct Held {
    pub secret: SecretObject,
    uid: String,
    version: String,
    keys: Vec<String>,
}

/// A call that brought nothing. It is tried again.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    #[error("cannot {0}: it changed meanwhile")]
    Changed(&'static str),
    #[error(transparent)]
    NotLeading(#[from] NotLeading),
    #[error("cannot {0}: the hub did not answer in time")]
    Timeout(&'static str),
    #[error("cannot {0}: the Secret cannot be read: {1}")]
    Unreadable(&'static str, register::Refused),
    #[error("cannot {0}: {1}")]
    Hub(&'static str, Cause),
}

// === impl Hub ===

impl Hub {
    pub fn new(client: Client, accounts: ApiResource, may_write: MayWrite) -> Self {
        Self { client, accounts, may_write }
    }

    fn accounts(&self, account: &Account) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &account.namespace, &self.accounts)
    }

    /// The Secret of its name. It is read anew each time: no token is kept.
    pub async fn secret(&self, account: &Account) -> Result<Option<Held>, HubError> {
        const WHAT: &str = "read the token's Secret";
        let resource = ApiResource::erase::<Secret>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &account.namespace, &resource);
        let answer = timeout(WITHIN, api.get_opt(&account.name)).await.map_err(|_| HubError::Timeout(WHAT))?;
        let Some(object) = answer.map_err(|error| told(WHAT, &error))? else { return Ok(None) };
        let value = value(&object);
        let keys = value["data"].as_object().into_iter().flat_map(|data| data.keys().cloned()).collect();
        let secret = SecretObject::read(&value).map_err(|refused| HubError::Unreadable(WHAT, refused))?;
        let (uid, version) = (object.metadata.uid, object.metadata.resource_version);
        Ok(Some(Held { secret, uid: uid.unwrap_or_default(), version: version.unwrap_or_default(), keys }))
    }

    /// Writes the Secret in place of `held`, or where there is none, as upstream's agent writes it.
    pub async fn put_secret(
        &self,
        account: &Account,
        held: Option<&Held>,
        (authority, token): (&str, &SecretString),
    ) -> Result<(), HubError> {
        const WHAT: &str = "write the token's Secret";
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &account.namespace);
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
            return self.write(WHAT, api.create(&creating(), &secret)).await.map(drop);
        };
        document["metadata"]["uid"] = held.uid.as_str().into();
        document["metadata"]["resourceVersion"] = held.version.as_str().into();
        for other in held.keys.iter().filter(|key| ![CA, TOKEN].contains(&key.as_str())) {
            document["data"][other] = Value::Null;
        }
        self.write(WHAT, api.patch_metadata(&account.name, &merging(), &Patch::Merge(&document))).await.map(drop)
    }

    /// Sets our finalizer, or takes it off.
    pub async fn hold(&self, account: &mut Account, is_held: bool) -> Result<(), HubError> {
        const WHAT: &str = "write the finalizers";
        let document = json!({"metadata": {
            "uid": account.uid, "resourceVersion": account.version, "finalizers": account.finalizers(is_held)}});
        let api = self.accounts(account);
        match self.write(WHAT, api.patch(&account.name, &merging(), &Patch::Merge(&document))).await {
            Ok(written) => {
                account.version = written.metadata.resource_version.unwrap_or_default();
                Ok(())
            }
            Err(HubError::Hub(_, Cause::Status(status))) if status.code == NOT_FOUND && !is_held => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub async fn put_status(&self, account: &Account, status: &Value) -> Result<(), HubError> {
        let document = json!({"metadata": {"uid": account.uid, "resourceVersion": account.version}, "status": status});
        let (api, patch) = (self.accounts(account), Patch::Merge(&document));
        self.write("write the status", api.patch_status(&account.name, &merging(), &patch)).await.map(drop)
    }

    /// Deletes a `ManagedServiceAccount`, and no later one of its name.
    pub async fn delete(&self, account: &Account) -> Result<(), HubError> {
        let parameters = deleting(&account.uid, None);
        let api = self.accounts(account);
        match self.write("delete it", api.delete(&account.name, &parameters)).await {
            Err(HubError::Hub(_, Cause::Status(status))) if status.code == NOT_FOUND => Ok(()),
            other => other.map(drop),
        }
    }

    async fn write<T>(
        &self,
        what: &'static str,
        call: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, HubError> {
        let within = within((self.may_write)())?;
        let answer = timeout(within, call).await.map_err(|_| HubError::Timeout(what))?;
        answer.map_err(|error| told(what, &error))
    }
}

/// The hub's words name objects and fields, never values.
fn told(what: &'static str, error: &kube::Error) -> HubError {
    match error {
        other if is(other, CONFLICT) => HubError::Changed(what),
        other => HubError::Hub(what, Cause::from(other)),
    }
}
