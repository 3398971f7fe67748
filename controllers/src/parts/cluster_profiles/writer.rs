//! Writes profiles by server-side apply without force, and deletes exactly the profile that was
//! judged.

use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::books::Profile;
use crate::calls::{CONFLICT, MANAGER, NOT_FOUND, deleting};
use crate::parts::hub_calls::{CallError, LeaderClient};
use crate::raw::RawObject;
use crate::secrets::is_of_fields;

/// Concurrent writes.
const AT_ONCE: usize = 16;

pub struct Writer {
    hub: LeaderClient,
    resource: ApiResource,
    permits: Semaphore,
}

/// The part of a profile that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Object,
    Status,
}

/// Why a profile was not written or removed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Another manager has set fields.
    #[error("{0}")]
    Conflict(String),
    #[error(transparent)]
    Call(CallError),
}

// === impl Of ===

impl Of {
    /// In the words of `managedFields`.
    pub fn subresource(self) -> &'static str {
        match self {
            Self::Object => "",
            Self::Status => "status",
        }
    }
}

// === impl Writer ===

impl Writer {
    pub fn new(hub: LeaderClient, resource: ApiResource) -> Self {
        Self { hub, resource, permits: Semaphore::new(AT_ONCE) }
    }

    /// The profiles of a namespace.
    fn api(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.hub.client.clone(), namespace, &self.resource)
    }

    /// The profiles of a namespace, for a watch.
    pub fn watched(&self, namespace: &str) -> Api<RawObject> {
        Api::namespaced_with(self.hub.client.clone(), namespace, &self.resource)
    }

    /// Returns the profile after the write.
    pub async fn apply(
        &self,
        namespace: &str,
        name: &str,
        document: &Value,
        of: Of,
    ) -> Result<DynamicObject, WriteError> {
        let (api, parameters, patch) = (self.api(namespace), PatchParams::apply(MANAGER), Patch::Apply(document));
        self.call(async {
            match of {
                Of::Object => api.patch(name, &parameters, &patch).await,
                Of::Status => api.patch_status(name, &parameters, &patch).await,
            }
        })
        .await
    }

    /// Deletes the profile that was judged, but not a later one with its name. Succeeds if it is
    /// gone already.
    pub async fn remove(&self, namespace: &str, name: &str, profile: &Profile) -> Result<(), WriteError> {
        let parameters = deleting(&profile.uid, Some(&profile.version));
        let api = self.api(namespace);
        match self.call(api.delete(name, &parameters)).await {
            Err(WriteError::Call(error)) if error.is(NOT_FOUND) => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    async fn call<T>(&self, call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, WriteError> {
        // The semaphore is never closed.
        let _permit = self.permits.acquire().await;
        self.hub.write(call).await.map_err(WriteError::from)
    }
}

// === impl WriteError ===

impl From<CallError> for WriteError {
    fn from(error: CallError) -> Self {
        match error {
            // The message names managers and fields, never values.
            CallError::Hub(kube::Error::Api(status)) if status.code == CONFLICT && is_of_fields(&status) => {
                Self::Conflict(status.message.clone())
            }
            other => Self::Call(other),
        }
    }
}
