//! Writes an identity into impersonation headers
//! (`k8s.io/client-go/transport.impersonatingRoundTripper`,
//! `k8s.io/apiserver/pkg/endpoints/filters/impersonation`).
//!
//! Also writes the headers of a front proxy (`k8s.io/client-go/transport.SetAuthProxyHeaders`,
//! which a hub's aggregator uses).
//!
//! An empty user name is never sent: without groups, a member would treat the request as the
//! credential's own.

mod disclosure;

use std::fmt::Display;
use std::sync::Arc;

use api::impersonable::Impersonable;
use auth::User;
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

pub use self::disclosure::Disclosure;

/// An identity that cannot be written as a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAHeader;

/// A fixed identity, made into headers when its rule is loaded.
#[derive(Debug, PartialEq, Eq)]
pub struct Impersonation {
    user: HeaderValue,
    groups: Vec<HeaderValue>,
    uid: Option<HeaderValue>,
}

/// What the registered credential may impersonate, where callers act as themselves whatever the
/// rules say.
#[derive(Debug, Clone)]
pub struct Within(pub Arc<Impersonable>);

static USER: HeaderName = HeaderName::from_static("impersonate-user");
static GROUP: HeaderName = HeaderName::from_static("impersonate-group");
static UID: HeaderName = HeaderName::from_static("impersonate-uid");
static REMOTE_USER: HeaderName = HeaderName::from_static("x-remote-user");
static REMOTE_GROUP: HeaderName = HeaderName::from_static("x-remote-group");
static REMOTE_UID: HeaderName = HeaderName::from_static("x-remote-uid");
const REMOTE_EXTRA: &str = "x-remote-extra-";
/// The groups that an API server adds by itself for authenticated and anonymous users. Few
/// credentials may impersonate these groups.
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const ANONYMOUS: &str = "system:anonymous";
/// Prefix of the extra attributes that Kubernetes itself sets.
const INFORMING: &str = "authentication.kubernetes.io/";
/// The prefix that Kubernetes reserves for its own users and groups
/// (`k8s.io/apiserver/pkg/authentication/user`).
const SYSTEM: &[u8] = b"system:";
const EXTRA: &str = "impersonate-extra-";
/// Prefix of all headers of an identity.
const IDENTITY: &str = "impersonate-";

/// Characters that a header name may contain unescaped besides letters and digits (RFC 9110
/// §5.6.2), without `%`, which starts an escape (`k8s.io/client-go/transport.headerKeyEscape`).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'*')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

// === impl Impersonation ===

impl Impersonation {
    /// The error is the name of the field at fault.
    pub fn new(user: &str, groups: &[String], uid: Option<&str>) -> Result<Self, &'static str> {
        Ok(Self {
            user: name(user).map_err(|NotAHeader| "user")?,
            groups: groups.iter().map(|group| name(group)).collect::<Result<_, _>>().map_err(|NotAHeader| "groups")?,
            uid: uid.map(name).transpose().map_err(|NotAHeader| "uid")?,
        })
    }

    /// Whether the user or one of the groups has the reserved prefix.
    pub fn is_of_the_system(&self) -> bool {
        self.groups.iter().chain([&self.user]).any(|name| name.as_bytes().starts_with(SYSTEM))
    }

    pub fn apply(&self, headers: &mut HeaderMap) {
        headers.insert(USER.clone(), self.user.clone());
        for group in &self.groups {
            headers.append(GROUP.clone(), group.clone());
        }
        if let Some(uid) = &self.uid {
            headers.insert(UID.clone(), uid.clone());
        }
    }
}

// === impl Within ===

impl Within {
    /// Never claims the group that the member adds to `user` by itself. Claims the other one of the
    /// two, because without it the member would add the first.
    fn has_group(&self, user: &str, name: &str) -> bool {
        let is_anonymous = user == ANONYMOUS;
        match name {
            AUTHENTICATED => is_anonymous && self.0.has_group(name),
            UNAUTHENTICATED => !is_anonymous,
            _ => self.0.has_group(name),
        }
    }

    /// Kubernetes' own attributes only inform (which pod, which node). Others may restrict, as
    /// `OpenShift`'s scopes do. They are always sent: the member must refuse the request if the
    /// credential may not impersonate them.
    fn has_extra(&self, key: &str, value: &str) -> bool {
        let key = key.to_ascii_lowercase();
        !key.starts_with(INFORMING) || self.0.has_extra(&key, value)
    }
}

/// Writes all attributes of `user` as a front proxy does. `headers` must have no identity yet.
pub fn front_proxied(user: &User, headers: &mut HeaderMap) -> Result<(), NotAHeader> {
    headers.insert(REMOTE_USER.clone(), name(&user.name)?);
    for group in user.groups.iter().filter(|group| !group.is_empty()) {
        headers.append(REMOTE_GROUP.clone(), value(group)?);
    }
    if let Some(uid) = user.uid.as_deref().filter(|uid| !uid.is_empty()) {
        headers.insert(REMOTE_UID.clone(), value(uid)?);
    }
    for (key, values) in &user.extra {
        let header = HeaderName::try_from(format!("{REMOTE_EXTRA}{}", escaped(key))).map_err(|_| NotAHeader)?;
        for text in values {
            headers.append(header.clone(), value(text)?);
        }
    }
    Ok(())
}

/// Removes the identity that [`Disclosure::apply`] wrote.
pub fn clear(headers: &mut HeaderMap) {
    let names: Vec<HeaderName> = headers.keys().filter(|name| name.as_str().starts_with(IDENTITY)).cloned().collect();
    for name in names {
        headers.remove(name);
    }
}

/// An extra attribute's key, escaped for a header name.
fn escaped(key: &str) -> impl Display {
    utf8_percent_encode(key, ESCAPED)
}

fn name(text: &str) -> Result<HeaderValue, NotAHeader> {
    if text.is_empty() { Err(NotAHeader) } else { value(text) }
}

/// As bytes, because names need not be ASCII. Fails with blanks at either end: these would be lost
/// on the way (RFC 9110 §5.5), and so would the difference between two names.
fn value(text: &str) -> Result<HeaderValue, NotAHeader> {
    if text.starts_with([' ', '\t']) || text.ends_with([' ', '\t']) {
        return Err(NotAHeader);
    }
    HeaderValue::from_bytes(text.as_bytes()).map_err(|_| NotAHeader)
}

#[cfg(test)]
mod tests;
