//! Calls to the hub: each within a time, and writes only while this replica leads.

use ::hub::Cause;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use crate::calls::{CONFLICT, NOT_FOUND, merging};
pub use crate::calls::{now_text, value};
use crate::sources::{Kind, MANAGED_CLUSTERS};
use crate::term::{MayWrite, NotLeading, WITHIN, within};

/// Objects of one answer of a list.
const PAGE: u32 = 500;

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
    /// What was to be changed is not there: the watch is about to say so.
    #[error("it is gone meanwhile")]
    Gone,
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

    /// The metadata of all objects that `chosen` chooses, page by page, as the hub has it and not a
    /// cache of it.
    pub async fn list_metadata<K>(&self, api: &Api<K>, chosen: ListParams) -> Result<Vec<ObjectMeta>, CallError>
    where
        K: Clone + DeserializeOwned + std::fmt::Debug,
    {
        let (mut all, mut parameters) = (Vec::new(), chosen.limit(PAGE));
        loop {
            let page = self.read(api.list_metadata(&parameters)).await?;
            let next = page.metadata.continue_.filter(|token| !token.is_empty());
            all.extend(page.items.into_iter().map(|object| object.metadata));
            match next {
                Some(token) => parameters = parameters.continue_token(&token),
                None => return Ok(all),
            }
        }
    }
}

/// A kind that is not one of ours.
pub fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

/// As this program understands it.
pub fn managed_clusters() -> ApiResource {
    let Kind { group, name, plural, versions, .. } = MANAGED_CLUSTERS;
    resource(group, versions[0], name, plural)
}

/// Milliseconds since 1970.
pub fn now() -> i64 {
    Timestamp::now().as_millisecond()
}

/// When its holder renewed it, as the holder wrote it: milliseconds since 1970.
pub fn renewed(lease: &Lease) -> Option<i64> {
    Some(lease.spec.as_ref()?.renew_time.as_ref()?.0.as_millisecond())
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
    /// Whether the hub answered with this code.
    pub fn is(&self, code: u16) -> bool {
        self.code() == Some(code)
    }

    /// Of the hub's answer, if that is what failed.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Hub(kube::Error::Api(status)) => Some(status.code),
            _ => None,
        }
    }

    /// Somebody else wrote in between, or what was to be created is there, or what was to be
    /// changed is not.
    pub fn is_conflict(&self) -> bool {
        self.is(CONFLICT) || matches!(self, Self::Gone)
    }

    /// It says nothing about the object: other writes would fail as well, each after its time.
    pub fn concerns_all(&self) -> bool {
        match self {
            Self::Gone => false,
            Self::Hub(kube::Error::Api(status)) => status.code >= 500 || status.code == 429,
            Self::NotLeading(_) | Self::Timeout | Self::Hub(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn what_is_wrong_with_the_hub_and_what_with_an_object() {
        let answered = |code| {
            let status = Status { code, ..Status::default() };
            CallError::Hub(kube::Error::Api(Box::new(status))).concerns_all()
        };
        assert_eq!([403, 404, 409, 422, 429, 500, 503].map(answered), [false, false, false, false, true, true, true]);
        assert!(CallError::Timeout.concerns_all() && CallError::from(NotLeading).concerns_all());
        assert!(!CallError::Gone.concerns_all() && CallError::Gone.is_conflict());
    }
}
