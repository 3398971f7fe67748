//! Calls to the hub: each within a time, and writes only while this replica leads.

use ::hub::Cause;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject, Patch};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::Value;
use tokio::time::timeout;

use crate::calls::{CONFLICT, NOT_FOUND, is, merging};
pub use crate::calls::{now_text, value};
use crate::term::{MayWrite, NotLeading, WITHIN, within};

#[derive(Clone)]
pub struct Hub {
    pub client: Client,
    pub may_write: MayWrite,
}

/// Why a call did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error(transparent)]
    NotLeading(#[from] NotLeading),
    #[error("the hub did not answer within {} s", WITHIN.as_secs())]
    Timeout,
    #[error("{}", Cause::from(.0))]
    Hub(#[source] kube::Error),
}

// === impl Hub ===

impl Hub {
    pub async fn read<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, CallError> {
        timeout(WITHIN, call).await.map_err(|_| CallError::Timeout)?.map_err(CallError::Hub)
    }

    /// The same for a call that changes something.
    pub async fn write<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, CallError> {
        timeout(within((self.may_write)())?, call).await.map_err(|_| CallError::Timeout)?.map_err(CallError::Hub)
    }

    /// A merge patch. One that replaces a list has the version in it that it was computed from.
    pub async fn merge(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
        change: &Value,
    ) -> Result<DynamicObject, CallError> {
        self.write(api.patch(name, &merging(), &Patch::Merge(change))).await
    }

    pub async fn merge_status(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
        change: &Value,
    ) -> Result<DynamicObject, CallError> {
        self.write(api.patch_status(name, &merging(), &Patch::Merge(change))).await
    }
}

/// A kind that is not one of ours.
pub fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

/// Milliseconds since 1970.
pub fn now() -> i64 {
    Timestamp::now().as_millisecond()
}

/// What is missing is none.
pub fn found<T>(answer: Result<T, CallError>) -> Result<Option<T>, CallError> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is(NOT_FOUND) => Ok(None),
        Err(error) => Err(error),
    }
}

// === impl CallError ===

impl CallError {
    fn is(&self, code: u16) -> bool {
        matches!(self, Self::Hub(error) if is(error, code))
    }

    /// Somebody else wrote in between, or what was to be created is there.
    pub fn is_conflict(&self) -> bool {
        self.is(CONFLICT)
    }
}
