//! Calls to the hub: each within a time, and writes only while this replica leads.

use std::fmt::Debug;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ApiResource, Patch};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Context;
pub use crate::calls::{CallError, list_metadata, now_text, value};
use crate::calls::{NOT_FOUND, bounded, merging};
use crate::sources::{Kind, MANAGED_CLUSTERS};
use crate::term::{MayWrite, WITHIN, within};

/// Calls the hub. Any replica may read; a leader's write ends before another leader's can begin.
#[derive(Clone)]
pub struct LeaderClient {
    /// For watches, and for an `Api`, whose calls are passed to [`LeaderClient::read`] and
    /// [`LeaderClient::write`].
    pub client: Client,
    /// For how long this replica may still write.
    pub may_write: MayWrite,
}

// === impl LeaderClient ===

impl LeaderClient {
    /// As a part calls it.
    pub fn of(context: &Context<'_>) -> Self {
        Self { client: context.hub.clone(), may_write: context.term.may_write() }
    }

    pub async fn read<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, CallError> {
        bounded(WITHIN, call).await
    }

    /// The same for a call that changes something.
    pub async fn write<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, CallError> {
        bounded(within((self.may_write)())?, call).await
    }

    /// A merge patch. One that replaces a list has the version in it that it was computed from.
    pub async fn merge<K>(&self, api: &Api<K>, name: &str, change: &Value) -> Result<K, CallError>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        self.write(api.patch(name, &merging(), &Patch::Merge(change))).await
    }

    pub async fn merge_status<K>(&self, api: &Api<K>, name: &str, change: &Value) -> Result<K, CallError>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        self.write(api.patch_status(name, &merging(), &Patch::Merge(change))).await
    }
}

/// For tests.
#[cfg(test)]
impl LeaderClient {
    /// A scripted hub, on which this replica leads.
    pub fn scripted(
        answer: impl Fn(&http::request::Parts, Value) -> crate::scripted::Answer + Send + Sync + 'static,
    ) -> Self {
        let may_write = std::sync::Arc::new(|| std::time::Duration::from_secs(10));
        Self { client: crate::scripted::client(answer), may_write }
    }

    /// The same hub, whose answers take so much time each.
    pub fn delayed(self, time: std::time::Duration) -> Self {
        Self { client: crate::scripted::delayed(self.client, time), ..self }
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

/// Now, in milliseconds since 1970.
pub fn now_millis() -> i64 {
    Timestamp::now().as_millisecond()
}

/// Now, in seconds since 1970.
pub fn now_seconds() -> i64 {
    Timestamp::now().as_second()
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
