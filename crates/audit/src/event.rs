//! One event of `audit.k8s.io/v1` at level Metadata.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api::access::{Attributes, ResourceAttributes};
use auth::User;
use serde::Serialize;

use crate::id::AuditId;
use crate::origin::cut;
use crate::timestamp::Micro;

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
    /// request did not fail, or if the response is the member's own.
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
        let user = |user: &Option<Arc<User>>| user.as_ref().map_or(0, |user| weight_of(user));
        let texts = self.request_uri.len() + self.user_agent.len() + self.verb.len();
        let texts = texts + self.cluster.as_ref().map_or(0, |cluster| cluster.len());
        let object = self.object.as_ref().map_or(0, ObjectRef::weight);
        let decision = self.decision.as_ref().map_or(0, Decision::weight);
        let addresses = self.source_ips.len() * size_of::<IpAddr>();
        OVERHEAD + texts + object + decision + addresses + user(&self.user) + user(&self.impersonated)
    }
}

fn weight_of(user: &User) -> usize {
    let texts = |texts: &[String]| texts.iter().map(|text| text.len() + size_of::<String>()).sum::<usize>();
    let extra = user.extra.iter().map(|(key, values)| key.len() + texts(values)).sum::<usize>();
    user.name.len() + user.uid.as_ref().map_or(0, String::len) + texts(&user.groups) + extra
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

/// The JSON form, with the fields in the order of the Go type.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    kind: &'static str,
    api_version: &'static str,
    level: &'static str,
    #[serde(rename = "auditID")]
    audit_id: &'a str,
    stage: &'static str,
    #[serde(rename = "requestURI")]
    request_uri: &'a str,
    verb: &'a str,
    user: UserInfo<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    impersonated_user: Option<UserInfo<'a>>,
    #[serde(rename = "sourceIPs")]
    source_ips: &'a [IpAddr],
    #[serde(skip_serializing_if = "str::is_empty")]
    user_agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_ref: Option<&'a ObjectRef>,
    response_status: ResponseStatus,
    request_received_timestamp: Micro,
    stage_timestamp: Micro,
    annotations: BTreeMap<&'static str, Cow<'a, str>>,
}

#[derive(Default, Serialize)]
struct UserInfo<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    username: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    groups: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<&'a BTreeMap<String, Vec<String>>>,
}

/// A `metav1.Status` with only its code. Go also writes its empty metadata.
#[derive(Serialize)]
struct ResponseStatus {
    metadata: Metadata,
    code: u16,
}

#[derive(Serialize)]
struct Metadata {}

// === impl Line ===

impl<'a> From<&'a Event> for Line<'a> {
    fn from(event: &'a Event) -> Self {
        Self {
            kind: "Event",
            api_version: "audit.k8s.io/v1",
            level: "Metadata",
            audit_id: event.id.as_str(),
            stage: match event.stage {
                Stage::ResponseStarted => "ResponseStarted",
                Stage::ResponseComplete => "ResponseComplete",
            },
            request_uri: &event.request_uri,
            verb: &event.verb,
            user: event.user.as_deref().map(UserInfo::from).unwrap_or_default(),
            impersonated_user: event.impersonated.as_deref().map(UserInfo::from),
            source_ips: &event.source_ips,
            user_agent: &event.user_agent,
            object_ref: event.object.as_ref(),
            response_status: ResponseStatus { metadata: Metadata {}, code: event.code },
            request_received_timestamp: Micro(event.received),
            stage_timestamp: Micro(event.received + event.latency),
            annotations: annotations(event),
        }
    }
}

fn annotations(event: &Event) -> BTreeMap<&'static str, Cow<'_, str>> {
    let milliseconds = event.latency.as_secs_f64() * 1000.0;
    let latency = Cow::Owned(format!("{milliseconds:.3}ms"));
    let mut annotations: BTreeMap<_, Cow<'_, str>> = BTreeMap::from([("cluster.core.oam.dev/latency", latency)]);
    if let Some(cluster) = &event.cluster {
        annotations.insert("cluster.core.oam.dev/cluster", Cow::Borrowed(cluster));
    }
    if let Some(dialect) = event.dialect {
        annotations.insert("cluster.core.oam.dev/dialect", Cow::Borrowed(dialect));
    }
    if let Some(side) = event.side {
        annotations.insert("cluster.core.oam.dev/side", Cow::Borrowed(side));
    }
    match &event.decision {
        None => {}
        Some(Decision::Allow) => drop(annotations.insert("authorization.k8s.io/decision", Cow::Borrowed("allow"))),
        Some(Decision::Forbid { reason }) => {
            annotations.insert("authorization.k8s.io/decision", Cow::Borrowed("forbid"));
            annotations.insert("authorization.k8s.io/reason", Cow::Borrowed(reason));
        }
    }
    annotations
}

// === impl UserInfo ===

impl<'a> From<&'a User> for UserInfo<'a> {
    fn from(user: &'a User) -> Self {
        Self {
            username: &user.name,
            uid: user.uid.as_deref(),
            groups: &user.groups,
            extra: (!user.extra.is_empty()).then_some(&user.extra),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
