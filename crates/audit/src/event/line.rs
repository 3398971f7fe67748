//! An event as a line of the log: `audit.k8s.io/v1` in JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;

use auth::User;
use serde::Serialize;

use super::{Decision, Event, ObjectRef, Stage};
use crate::timestamp::Micro;

/// The JSON form, with the fields in the order of the Go type.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Line<'a> {
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
