//! Writes of profiles: server-side apply without force, and deletion of exactly the profile that
//! was judged.

use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::books::Profile;
use crate::calls::{CONFLICT, MANAGER, NOT_FOUND, deleting};
use crate::parts::hub::{CallError, Hub};
use crate::raw::RawObject;
use crate::secrets::is_of_fields;

/// Writes at a time.
const AT_ONCE: usize = 16;

pub struct Writer {
    hub: Hub,
    resource: ApiResource,
    permits: Semaphore,
}

/// What of a profile is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Object,
    Status,
}

/// Why a profile was not written or removed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Fields of another manager.
    #[error("{0}")]
    Conflict(String),
    #[error(transparent)]
    Call(CallError),
}

// === impl Of ===

impl Of {
    /// As `managedFields` call it.
    pub fn subresource(self) -> &'static str {
        match self {
            Self::Object => "",
            Self::Status => "status",
        }
    }
}

// === impl Writer ===

impl Writer {
    pub fn new(hub: Hub, resource: ApiResource) -> Self {
        Self { hub, resource, permits: Semaphore::new(AT_ONCE) }
    }

    /// The profiles of a namespace.
    fn api(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.hub.client.clone(), namespace, &self.resource)
    }

    /// The same, to be watched.
    pub fn watched(&self, namespace: &str) -> Api<RawObject> {
        Api::namespaced_with(self.hub.client.clone(), namespace, &self.resource)
    }

    /// Returns the profile as it is now.
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

    /// Removes the profile that was judged, and no later one of its name. One that is gone already
    /// is removed.
    pub async fn remove(&self, namespace: &str, name: &str, profile: &Profile) -> Result<(), WriteError> {
        let parameters = deleting(&profile.uid, Some(&profile.version));
        let api = self.api(namespace);
        match self.call(api.delete(name, &parameters)).await {
            Err(WriteError::Call(error)) if error.is(NOT_FOUND) => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    async fn call<T>(&self, call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, WriteError> {
        // It is never closed.
        let _permit = self.permits.acquire().await;
        self.hub.write(call).await.map_err(WriteError::from)
    }
}

// === impl WriteError ===

impl From<CallError> for WriteError {
    fn from(error: CallError) -> Self {
        match error {
            // Its message names managers and fields, never values.
            CallError::Hub(kube::Error::Api(status)) if status.code == CONFLICT && is_of_fields(&status) => {
                Self::Conflict(status.message.clone())
            }
            other => Self::Call(other),
        }
    }
}
