//! Calls to one member, through the gateway: each with a timeout, a limited number at a time, and
//! writes only while this replica leads.

mod error;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use api::cluster_name::ClusterName;
use delivery::identity::Identity;
use fleet::{Failure, Kind, Sender};
use http::{Method, Request};
use kube::client::Body;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value as Json;
use tokio::time::timeout;

pub use self::error::{MemberError, OWN};
use super::lanes::{Lane, Lanes};
use crate::calls::MANAGER;
use crate::metrics::Delivery;
use crate::raw::{HEAVIEST, weight};
use crate::term::{MayWrite, NotLeading, within_at_most};

/// Limit of an answer in bytes: that of the longest request that an API server accepts.
const LARGEST: usize = 3 << 20;
/// Characters to escape in paths.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');
const MERGE: &str = "application/merge-patch+json";
const PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json";

/// The location of an object, or, without a name, of its kind's list.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    pub identity: &'a Identity,
    pub version: &'a str,
}

/// The limits of concurrent requests, and the timeout of each.
#[derive(Clone)]
pub struct Limits {
    pub lanes: Lanes,
    pub within: Duration,
}

pub struct Member {
    pub cluster: ClusterName,
    sender: Sender,
    within: Duration,
    lane: Lane,
    may_write: MayWrite,
    pub metrics: Delivery,
    /// Number of its answers, positive or negative.
    answers: AtomicU64,
    /// No more writes to it.
    is_closed: AtomicBool,
}

// === impl At ===

impl At<'_> {
    /// Path of the object.
    fn object(&self) -> String {
        format!("{}/{}", self.list(), encoded(&self.identity.name))
    }

    /// Path of its kind's list, in its namespace.
    fn list(&self) -> String {
        let Identity { group, resource, namespace, .. } = self.identity;
        let root =
            if group.is_empty() { format!("/api/{}", self.version) } else { format!("/apis/{group}/{}", self.version) };
        if namespace.is_empty() {
            format!("{root}/{resource}")
        } else {
            format!("{root}/namespaces/{namespace}/{resource}")
        }
    }
}

fn encoded(text: &str) -> impl std::fmt::Display + '_ {
    utf8_percent_encode(text, SEGMENT)
}

// === impl Member ===

impl Member {
    pub fn new(cluster: &ClusterName, sender: Sender, limits: &Limits, may_write: MayWrite, metrics: Delivery) -> Self {
        let (within, lane) = (limits.within, limits.lanes.lane());
        let (answers, is_closed) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { cluster: cluster.clone(), sender, within, lane, may_write, metrics, answers, is_closed }
    }

    pub fn sender(&self) -> Sender {
        self.sender.clone()
    }

    /// Whether it repeatedly takes long to answer, or does not answer.
    pub fn is_slow(&self) -> bool {
        self.lane.is_slow()
    }

    /// Number of its answers so far.
    pub fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    /// The cluster no longer gets deliveries: no write begins from now on.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// The object. A missing object is an error, too.
    pub async fn find(&self, at: At<'_>) -> Result<Json, MemberError> {
        self.send(Method::GET, at.object(), None, Use::Read).await
    }

    /// The object, if it exists.
    pub async fn get(&self, at: At<'_>) -> Result<Option<Json>, MemberError> {
        self.read(&at.object()).await
    }

    /// The object at a path, if it exists.
    pub async fn read(&self, path: &str) -> Result<Option<Json>, MemberError> {
        match self.send(Method::GET, path.to_owned(), None, Use::Read).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub async fn create(&self, at: At<'_>, object: &Json) -> Result<Json, MemberError> {
        self.write_as_manager(Method::POST, &at.list(), (JSON, object)).await
    }

    pub async fn replace(&self, at: At<'_>, object: &Json) -> Result<Json, MemberError> {
        self.write_as_manager(Method::PUT, &at.object(), (JSON, object)).await
    }

    /// What the member would make of a replacement. A server behind the member's may ignore that
    /// it is a dry run, and store it: so it counts as a write.
    pub async fn try_replace(&self, at: At<'_>, object: &Json) -> Result<Json, MemberError> {
        let path = format!("{}?fieldManager={MANAGER}&dryRun=All", at.object());
        self.write(Method::PUT, path, Some((JSON, object))).await
    }

    /// A JSON merge patch.
    pub async fn merge(&self, at: At<'_>, change: &Json) -> Result<Json, MemberError> {
        self.write_as_manager(Method::PATCH, &at.object(), (MERGE, change)).await
    }

    /// A JSON patch (RFC 6902).
    pub async fn patch(&self, at: At<'_>, operations: &Json) -> Result<Json, MemberError> {
        self.write_as_manager(Method::PATCH, &at.object(), (PATCH, operations)).await
    }

    pub async fn merge_status(&self, at: At<'_>, change: &Json) -> Result<Json, MemberError> {
        self.write_as_manager(Method::PATCH, &format!("{}/status", at.object()), (MERGE, change)).await
    }

    pub async fn apply(&self, at: At<'_>, object: &Json, manager: &str, force: bool) -> Result<Json, MemberError> {
        let path = format!("{}?fieldManager={}&force={force}", at.object(), encoded(manager));
        self.write(Method::PATCH, path, Some((APPLY, object))).await
    }

    /// A deletion answers with a Status, or with the object, if it is not gone yet.
    pub async fn delete(&self, at: At<'_>, options: &Json) -> Result<Json, MemberError> {
        self.write(Method::DELETE, at.object(), Some((JSON, options))).await
    }

    /// A review only asks, and changes nothing.
    pub async fn review(&self, review: &Json) -> Result<bool, MemberError> {
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews".to_owned();
        let answer = self.send(Method::POST, path, Some((JSON, review)), Use::Read).await?;
        Ok(answer.pointer("/status/allowed").and_then(Json::as_bool).unwrap_or(false))
    }

    async fn write_as_manager(&self, method: Method, path: &str, body: (&str, &Json)) -> Result<Json, MemberError> {
        self.write(method, format!("{path}?fieldManager={MANAGER}"), Some(body)).await
    }

    async fn write(&self, method: Method, path: String, body: Option<(&str, &Json)>) -> Result<Json, MemberError> {
        self.send(method, path, body, Use::Write).await
    }

    /// For a group that a member does not have, the answer has no Status, as from a hub without a
    /// gateway; and so has the answer for a group whose own server is broken. If the member answers
    /// `/version`, it was the member that answered.
    async fn send(
        &self,
        method: Method,
        path: String,
        body: Option<(&str, &Json)>,
        what_for: Use,
    ) -> Result<Json, MemberError> {
        match self.once(method, path, body, what_for).await {
            Err(MemberError::Away(failure)) if matches!(failure.kind, Kind::Plain(404 | 500..=599)) => {
                self.is_there().await?;
                Err(MemberError::Refused(failure))
            }
            answer => answer,
        }
    }

    /// Requests a path that any member answers.
    pub async fn is_there(&self) -> Result<(), MemberError> {
        self.once(Method::GET, "/version".to_owned(), None, Use::Read).await.map(drop)
    }

    fn within(&self, what_for: Use) -> Result<Duration, MemberError> {
        match what_for {
            Use::Read => Ok(self.within),
            Use::Write if self.is_closed.load(Ordering::Relaxed) => Err(NotLeading.into()),
            Use::Write => Ok(within_at_most((self.may_write)(), self.within)?),
        }
    }

    async fn once(
        &self,
        method: Method,
        path: String,
        body: Option<(&str, &Json)>,
        what_for: Use,
    ) -> Result<Json, MemberError> {
        let sees_admission = method != Method::GET;
        let request = request(method, path, body).map_err(|error| MemberError::judged(&self.cluster, error))?;
        let _held = self.lane.enter().await;
        // Only now, because the term may have ended during the wait for other requests.
        let within = self.within(what_for)?;
        let answer = timeout(within, fleet::answer(&self.sender, request, LARGEST)).await;
        let answer = answer.unwrap_or_else(|_| Err(Failure::late(within)));
        self.metrics.asked(self.cluster.as_str(), answer.as_ref().err().map(|failure| failure.kind));
        let body = answer.map_err(|failure| match MemberError::judged(&self.cluster, failure) {
            error if sees_admission => error.after_admission(),
            error => error,
        });
        if matches!(body, Ok(_) | Err(MemberError::Refused(_))) {
            self.answers.fetch_add(1, Ordering::Relaxed);
        }
        let body = body?;
        let unreadable = |why: &str| MemberError::judged(&self.cluster, Failure::own(why));
        if weight(&body) > HEAVIEST {
            return Err(unreadable("the answer has more values than any object: they would take more than 24 MiB"));
        }
        serde_json::from_slice(&body).map_err(|_| unreadable("the answer is not JSON"))
    }
}

/// The purpose of a request.
#[derive(Debug, Clone, Copy)]
enum Use {
    Read,
    /// A write must end within the term.
    Write,
}

fn request(method: Method, path: String, body: Option<(&str, &Json)>) -> Result<Request<Body>, Failure> {
    let mut request = Request::builder().method(method).uri(path).header("accept", JSON);
    let mut bytes = Vec::new();
    if let Some((kind, body)) = body {
        request = request.header("content-type", kind);
        bytes = serde_json::to_vec(body).map_err(|_| Failure::own("the request cannot be written"))?;
    }
    request.body(Body::from(bytes)).map_err(|error| Failure::own(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_the_object() {
        let of = |group: &str, namespace: &str, name: &str| {
            let identity = Identity {
                group: group.into(),
                resource: "things".into(),
                name: name.into(),
                namespace: namespace.into(),
            };
            At { identity: &identity, version: "v1" }.object()
        };
        assert_eq!(of("", "n", "a"), "/api/v1/namespaces/n/things/a");
        assert_eq!(of("x.io", "", "system:a b"), "/apis/x.io/v1/things/system:a%20b");
    }
}
