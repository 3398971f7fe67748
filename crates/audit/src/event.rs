//! One event of `audit.k8s.io/v1`, level Metadata.

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

/// Bytes written of one part of an object's identity: names have 253, what stands in a path may
/// have 64 KiB.
const LONGEST_PART: usize = 512;
/// Bytes of the hub's reason for a refusal: it lists what it could not resolve, up to all bindings.
const LONGEST_REASON: usize = 512;
/// What an event takes in memory beside its texts, in bytes, roughly.
const OVERHEAD: usize = 512;

/// How far the request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The response has begun and may take long: watches, followed logs, upgrades.
    ResponseStarted,
    /// The response is over.
    ResponseComplete,
}

/// What authorization said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Allow,
    /// See [`Decision::forbid`].
    Forbid {
        reason: Box<str>,
    },
}

/// What a request is about. Cut where the request chose to be absurd.
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

/// Everything the log says about one request at one stage.
#[derive(Debug, Clone)]
pub struct Event {
    pub id: AuditId,
    pub stage: Stage,
    /// Without secrets: see [`redacted`](crate::redacted).
    pub request_uri: Box<str>,
    /// RBAC verb, or the lower-case method of a request that is about no resource.
    pub verb: Cow<'static, str>,
    /// `None`: unknown.
    pub user: Option<Arc<User>>,
    /// The user that `user` acted as.
    pub impersonated: Option<Arc<User>>,
    pub source_ips: Vec<IpAddr>,
    pub user_agent: Box<str>,
    /// On the member, for a proxied request.
    pub object: Option<ObjectRef>,
    /// The HTTP status the client got; 499 if it left before it got one.
    pub code: u16,
    pub received: SystemTime,
    /// From there to this stage.
    pub latency: Duration,
    /// The cluster a proxied request names; it may not exist.
    pub cluster: Option<Arc<str>>,
    /// In which spelling the cluster was named. `None`: in the gateway's own.
    pub dialect: Option<&'static str>,
    pub decision: Option<Decision>,
    /// Where it failed: `caller`, `hub`, `gateway`, `tunnel` or `member`. `None`: it did not, or
    /// the answer is a member's own.
    pub side: Option<&'static str>,
}

// === impl Decision ===

impl Decision {
    /// With as much of the hub's `reason` as is written.
    pub fn forbid(reason: &str) -> Self {
        Self::Forbid { reason: cut(reason, LONGEST_REASON) }
    }

    fn weight(&self) -> usize {
        if let Self::Forbid { reason } = self { reason.len() } else { 0 }
    }
}

// === impl Event ===

impl Event {
    /// Says what is asked for: verb and object.
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

    /// Appends the event as one line, its end included.
    pub(crate) fn write_line(&self, line: &mut Vec<u8>) {
        let line_of = Line::from(self);
        // Into memory, and of maps with text keys: there is nothing to fail.
        if serde_json::to_writer(&mut *line, &line_of).is_ok() {
            line.push(b'\n');
        }
    }

    /// Bytes it holds in memory, roughly, its share in the user's attributes included.
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

/// The JSON form, fields in the order of the Go type.
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

/// A `metav1.Status` of which only the code is known. Go writes its empty metadata.
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
