//! What calls to hubs and members have in common: their parameters, and how answers are read.

use std::time::Duration;

use anyhow::Context as _;
use hub::cause_text;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, DynamicObject, ListParams, PatchParams, PostParams, Preconditions};
use kube::{Api, Resource};
use net::runtime::{BackgroundRuntime, builder};
use serde_json::Value;
use tokio::time::timeout;

use crate::raw;
use crate::term::{NotLeading, WITHIN};

pub use hub::{PAGE, paged, watcher};
/// Whose the fields are that this program writes.
pub use register::claims::FIELD_MANAGER as MANAGER;

/// How we call ourselves to hubs.
pub const PROGRAM: &str = concat!("cluster-gateway-controllers/", env!("CARGO_PKG_VERSION"));
/// What cannot be interrupted: name look-ups.
pub const LAST_MOMENT: Duration = Duration::from_millis(500);
pub const NOT_FOUND: u16 = 404;
pub const CONFLICT: u16 = 409;
const TOO_LARGE: u16 = 413;
/// What etcd, and its client, say of an object that is too large: API servers pass it on as 500.
const TOO_LARGE_FOR_ETCD: [&str; 2] = ["request is too large", "message larger than max"];
const TOO_MANY: u16 = 429;
/// A hub that asks for more is asked again after this all the same.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// Why a call did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error(transparent)]
    NotLeading(#[from] NotLeading),
    #[error("the hub did not answer within {} s", WITHIN.as_secs())]
    Timeout,
    /// What was to be changed is not there, or not as it was: the watch is about to say so.
    #[error("it was changed or deleted in the meantime")]
    Gone,
    #[error("{}", cause_text(.0))]
    Hub(#[source] kube::Error),
}

/// A runtime for calls, `named` so.
pub fn runtime(named: &'static str) -> anyhow::Result<BackgroundRuntime> {
    BackgroundRuntime::start(builder(1), named, LAST_MOMENT).context("cannot start a runtime")
}

pub fn creating() -> PostParams {
    PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() }
}

/// For merge patches.
pub fn merging() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}

/// Deletes the object that was judged and no later one of its name; with `version`, only while it
/// has not changed.
pub fn deleting(uid: &str, version: Option<&str>) -> DeleteParams {
    let (uid, resource_version) = (Some(uid.to_owned()), version.map(str::to_owned));
    DeleteParams { preconditions: Some(Preconditions { uid, resource_version }), ..DeleteParams::default() }
}

/// Whether the answer is a Status of this code.
pub fn is(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}

/// For how long the hub wants to be left alone, if its Status says so: it is too busy, or not
/// ready. A 429 that does not say it is a second: the header is not read, since kube's errors lack
/// it.
pub fn asked_to_wait(error: &kube::Error) -> Duration {
    let kube::Error::Api(status) = error else { return Duration::ZERO };
    let told = status.details.as_ref().map_or(0, |details| u64::from(details.retry_after_seconds));
    match Duration::from_secs(told).min(LONGEST_WAIT) {
        Duration::ZERO if status.code == TOO_MANY => Duration::from_secs(1),
        told => told,
    }
}

/// Whether an object was not created because another one has its name. Quotas that are written at
/// the same time answer the same code.
pub fn is_taken(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == CONFLICT && status.reason == "AlreadyExists")
}

/// An object as JSON, for code that reads or decides.
pub fn value(object: &DynamicObject) -> Value {
    // An object that came as JSON is JSON.
    serde_json::to_value(object).unwrap_or_default()
}

/// The time now as `metav1.Time` is written.
pub fn now_text() -> String {
    api::time::now()
}

/// The answer of the hub, unless it takes longer than that.
pub async fn bounded<T>(within: Duration, call: impl Future<Output = kube::Result<T>>) -> Result<T, CallError> {
    timeout(within, call).await.map_err(|_| CallError::Timeout)?.map_err(CallError::Hub)
}

/// What a list had.
pub struct Listed<T> {
    /// The `resourceVersion` of the list: that of the hub as it was asked.
    pub version: String,
    pub items: Vec<T>,
}

/// The metadata of all objects that `chosen` chooses, page by page, as the hub has it and not a
/// cache of it.
pub async fn list_metadata<K: Resource + Clone>(
    api: &Api<K>,
    chosen: ListParams,
) -> Result<Vec<ObjectMeta>, CallError> {
    Ok(list_metadata_as(api, chosen, |metadata| metadata).await?.items)
}

/// The same, of each object what `read` reads.
pub async fn list_metadata_as<K: Resource + Clone, T>(
    api: &Api<K>,
    chosen: ListParams,
    read: impl Fn(ObjectMeta) -> T,
) -> Result<Listed<T>, CallError> {
    let (mut items, mut parameters) = (Vec::new(), chosen.limit(PAGE));
    loop {
        let page = bounded(WITHIN, raw::meta::list(api, &parameters)).await?;
        let next = page.metadata.continue_.filter(|token| !token.is_empty());
        items.extend(page.items.into_iter().map(|object| read(object.metadata)));
        match next {
            Some(token) => parameters = parameters.continue_token(&token),
            // All pages are of one version.
            None => return Ok(Listed { version: page.metadata.resource_version.unwrap_or_default(), items }),
        }
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

    /// Another writer came in between, or what was to be created is there, or what was to be
    /// changed is not.
    pub fn is_conflict(&self) -> bool {
        self.is(CONFLICT) || matches!(self, Self::Gone)
    }

    /// The hub takes no object, or no request, as large as that.
    pub fn is_too_large(&self) -> bool {
        let Self::Hub(kube::Error::Api(status)) = self else { return false };
        status.code == TOO_LARGE || TOO_LARGE_FOR_ETCD.iter().any(|text| status.message.contains(text))
    }

    /// It says nothing about the object: other writes would fail as well, each after its time.
    pub fn concerns_all(&self) -> bool {
        // Though etcd's refusal comes as a failure of the hub.
        if self.is_too_large() {
            return false;
        }
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
    use crate::term::NotLeading;

    #[test]
    fn what_is_wrong_with_the_hub_and_what_with_an_object() {
        let answered = |code| {
            let status = Status { code, ..Status::default() };
            CallError::Hub(kube::Error::Api(Box::new(status))).concerns_all()
        };
        assert_eq!([403, 404, 409, 422, 429, 500, 503].map(answered), [false, false, false, false, true, true, true]);
        assert!(CallError::Timeout.concerns_all() && CallError::from(NotLeading).concerns_all());
        assert!(!CallError::Gone.concerns_all() && CallError::Gone.is_conflict());
        // As a hub answers, and etcd and its client behind it.
        let texts = [
            "Request entity too large: limit is 3145728",
            "etcdserver: request is too large",
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2342343 vs. 2097152)",
        ];
        for (code, text) in [413, 500, 500].into_iter().zip(texts) {
            let status = Status { code, message: text.to_owned(), ..Status::default() };
            let error = CallError::Hub(kube::Error::Api(Box::new(status)));
            assert!(error.is_too_large() && !error.concerns_all(), "{text}");
        }
    }
}
