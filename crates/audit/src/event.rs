//! One event of `audit.k8s.io/v1` at level Metadata.

mod line;

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api::access::{Attributes, ResourceAttributes};
use auth::User;
use serde::Serialize;

use self::line::Line;
use crate::id::AuditId;
use crate::origin::cut;

/// Most bytes logged for one part of an object's identity. Names have at most 253, but a path
/// segment may have 64 KiB.
const LONGEST_PART: usize = 512;
/// Most bytes logged of the hub's reason for a refusal: it lists what it could not resolve, up to
/// all bindings.
const LONGEST_REASON: usize = 512;
/// Approximate bytes of an event in memory, besides its texts.
const OVERHEAD: usize = 512;

/// The stage of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The response has begun and may take long: watches, followed logs, upgrades.
    ResponseStarted,
    /// The response has ended.
    ResponseComplete,
}

/// The authorization decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Allow,
    /// Made by [`Decision::forbid`].
    Forbid {
        reason: Box<str>,
    },
}

/// The object of a request. Its parts are cut if they are extremely long.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    #[serde(skip_serializing_if = "str::is_empty")]
    resource: Box<str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: Box<str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: Box<str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_group: Box<str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_version: Box<str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    subresource: Box<str>,
}

/// All data that the log contains about one request at one stage.
#[derive(Debug, Clone)]
pub struct Event {
    pub id: AuditId,
    pub stage: Stage,
    /// Without secrets: see [`redacted`](crate::redacted).
    pub request_uri: Box<str>,
    /// RBAC verb, or the lower-case method of a non-resource request.
    pub verb: Cow<'static, str>,
    /// `None` if unknown.
    pub user: Option<Arc<User>>,
    /// The user that `user` acted as.
    pub impersonated: Option<Arc<User>>,
    pub source_ips: Vec<IpAddr>,
    pub user_agent: Box<str>,
    /// For a proxied request, the object on the member.
    pub object: Option<ObjectRef>,
    /// The HTTP status that the client received. 499 if it disconnected before.
    pub code: u16,
    pub received: SystemTime,
    /// Time from `received` to this stage.
    pub latency: Duration,
    /// The cluster that a proxied request names. It may not exist.
    pub cluster: Option<Arc<str>>,
    /// The dialect that named the cluster. `None` is the gateway's own.
    pub dialect: Option<&'static str>,
    pub decision: Option<Decision>,
    /// The side that failed: `caller`, `hub`, `gateway`, `tunnel` or `member`. `None` if the
    /// request did not fail, or if the response is the member's own and was not cut off.
    pub side: Option<&'static str>,
}

// === impl Decision ===

impl Decision {
    /// Keeps as much of the hub's `reason` as the log contains.
    pub fn forbid(reason: &str) -> Self {
        Self::Forbid { reason: cut(reason, LONGEST_REASON) }
    }

    fn weight(&self) -> usize {
        if let Self::Forbid { reason } = self { reason.len() } else { 0 }
    }
}

// === impl Event ===

impl Event {
    /// Sets the verb and the object.
    pub fn asks(&mut self, attributes: &Attributes) {
        match attributes {
            Attributes::Resource(resource) => {
                self.verb = Cow::Borrowed(resource.verb.as_str());
                self.object = Some(ObjectRef::from(resource));
            }
            Attributes::NonResource { verb, .. } => {
                self.verb = match verb {
                    Cow::Borrowed(verb) => Cow::Borrowed(verb),
                    Cow::Owned(verb) => Cow::Owned(cut(verb, LONGEST_PART).into_string()),
                };
                self.object = None;
            }
        }
    }

    /// Appends the event as one line, including the line end.
    pub(crate) fn write_line(&self, line: &mut Vec<u8>) {
        let line_of = Line::from(self);
        // This writes to memory, and all map keys are strings, so it cannot fail.
        if serde_json::to_writer(&mut *line, &line_of).is_ok() {
            line.push(b'\n');
        }
    }

    /// Approximate bytes in memory, including its share of the user's attributes.
    pub(crate) fn weight(&self) -> usize {
        let user = |user: &Option<Arc<User>>| user.as_ref().map_or(0, |user| user.bytes());
        let texts = self.request_uri.len() + self.user_agent.len() + self.verb.len();
        let texts = texts + self.cluster.as_ref().map_or(0, |cluster| cluster.len());
        let object = self.object.as_ref().map_or(0, ObjectRef::weight);
        let decision = self.decision.as_ref().map_or(0, Decision::weight);
        let addresses = self.source_ips.len() * size_of::<IpAddr>();
        OVERHEAD + texts + object + decision + addresses + user(&self.user) + user(&self.impersonated)
    }
}

// === impl ObjectRef ===

impl ObjectRef {
    fn weight(&self) -> usize {
        let Self { resource, namespace, name, api_group, api_version, subresource } = self;
        [resource, namespace, name, api_group, api_version, subresource].map(|part| part.len()).iter().sum()
    }
}

impl From<&ResourceAttributes> for ObjectRef {
    fn from(resource: &ResourceAttributes) -> Self {
        let part = |text: &str| cut(text, LONGEST_PART);
        let optional = |text: &Option<Arc<str>>| text.as_deref().map(part).unwrap_or_default();
        Self {
            resource: part(&resource.resource),
            namespace: optional(&resource.namespace),
            name: optional(&resource.name),
            api_group: part(&resource.group),
            api_version: part(&resource.version),
            subresource: part(&resource.subresource),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
