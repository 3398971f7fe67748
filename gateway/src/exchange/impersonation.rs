//! An identity in the headers by which an API server lets one user act as another
//! (`k8s.io/client-go/transport.impersonatingRoundTripper`,
//! `k8s.io/apiserver/pkg/endpoints/filters/impersonation`).
//!
//! An empty name is never sent: with no groups beside it a member takes the request for one of the
//! credential itself.

use std::fmt::Display;
use std::sync::Arc;

use api::impersonable::Impersonable;
use auth::User;
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// An identity has no form as a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAHeader;

/// An identity that is always the same, made into headers when its rule was loaded.
#[derive(Debug, PartialEq, Eq)]
pub struct Impersonation {
    user: HeaderValue,
    groups: Vec<HeaderValue>,
    uid: Option<HeaderValue>,
}

/// How much of its callers a gateway tells members.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Disclosure {
    uid: bool,
    /// Keys of extra attributes that are withheld, and beginnings of such keys.
    withheld: Vec<String>,
    withheld_prefixes: Vec<String>,
}

/// How much a member may see where callers act as themselves, whatever the rules say.
#[derive(Debug, Clone)]
pub struct Within(pub Arc<Impersonable>);

static USER: HeaderName = HeaderName::from_static("impersonate-user");
static GROUP: HeaderName = HeaderName::from_static("impersonate-group");
static UID: HeaderName = HeaderName::from_static("impersonate-uid");
/// What an API server itself adds for authenticated and anonymous users. A credential that may
/// impersonate may rarely claim these groups.
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const ANONYMOUS: &str = "system:anonymous";
/// Keys of extra attributes that Kubernetes gives itself.
const INFORMING: &str = "authentication.kubernetes.io/";
/// What Kubernetes keeps for its own users and groups (`k8s.io/apiserver/pkg/authentication/user`).
const SYSTEM: &[u8] = b"system:";
const EXTRA: &str = "impersonate-extra-";

/// What a header name may hold beside letters and digits (RFC 9110 §5.6.2), without `%`, which
/// introduces an escape (`k8s.io/client-go/transport.headerKeyEscape`).
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
    /// On an error, the field that is to blame.
    pub fn new(user: &str, groups: &[String], uid: Option<&str>) -> Result<Self, &'static str> {
        Ok(Self {
            user: name(user).map_err(|NotAHeader| "user")?,
            groups: groups.iter().map(|group| name(group)).collect::<Result<_, _>>().map_err(|NotAHeader| "groups")?,
            uid: uid.map(name).transpose().map_err(|NotAHeader| "uid")?,
        })
    }

    /// Whether the user, or one of the groups, is of those that Kubernetes keeps for itself.
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

// === impl Disclosure ===

impl Disclosure {
    /// `uid`: whether uids are sent. `withheld`: keys of extra attributes that are not; a trailing
    /// `*` makes a prefix.
    pub fn new(uid: bool, withheld: &[String]) -> Self {
        let mut disclosure = Self { uid, ..Self::default() };
        for key in withheld.iter().map(|key| key.trim().to_ascii_lowercase()).filter(|key| !key.is_empty()) {
            match key.strip_suffix('*') {
                Some(prefix) => disclosure.withheld_prefixes.push(prefix.to_owned()),
                None => disclosure.withheld.push(key),
            }
        }
        disclosure
    }

    /// `within`: what else is left out.
    pub fn apply(&self, user: &User, within: Option<&Within>, headers: &mut HeaderMap) -> Result<(), NotAHeader> {
        headers.insert(USER.clone(), name(&user.name)?);
        // An empty group is none: members that read it otherwise than as nothing read it as an
        // error.
        let told =
            |group: &&String| !group.is_empty() && within.is_none_or(|within| within.has_group(&user.name, group));
        for group in user.groups.iter().filter(told) {
            headers.append(GROUP.clone(), name(group)?);
        }
        let told = |uid: &&str| self.uid && !uid.is_empty() && within.is_none_or(|within| within.0.has_uid(uid));
        if let Some(uid) = user.uid.as_deref().filter(told) {
            headers.insert(UID.clone(), name(uid)?);
        }
        for (key, values) in user.extra.iter().filter(|(key, _)| !self.withholds(key)) {
            let header = format!("{EXTRA}{}", escaped(key));
            let header = HeaderName::from_bytes(header.as_bytes()).map_err(|_| NotAHeader)?;
            for text in values.iter().filter(|text| within.is_none_or(|within| within.has_extra(key, text))) {
                headers.append(header.clone(), value(text)?);
            }
        }
        Ok(())
    }

    /// By the key as the member reads it: names of headers arrive in lower case.
    fn withholds(&self, key: &str) -> bool {
        let key = &*key.to_ascii_lowercase();
        self.withheld.iter().any(|withheld| withheld == key)
            || self.withheld_prefixes.iter().any(|prefix| key.starts_with(prefix))
    }
}

// === impl Within ===

impl Within {
    /// What the member adds by itself to `user` is never claimed. Of the two such groups the other
    /// one is: without it the member would add the first.
    fn has_group(&self, user: &str, name: &str) -> bool {
        let is_anonymous = user == ANONYMOUS;
        match name {
            AUTHENTICATED => is_anonymous && self.0.has_group(name),
            UNAUTHENTICATED => !is_anonymous,
            _ => self.0.has_group(name),
        }
    }

    /// Kubernetes' own only inform (which pod, which node). Others may be there to restrict, as
    /// `OpenShift`'s scopes do: it is the member's to refuse a request that cannot tell of them.
    fn has_extra(&self, key: &str, value: &str) -> bool {
        let key = key.to_ascii_lowercase();
        !key.starts_with(INFORMING) || self.0.has_extra(&key, value)
    }
}

/// The key of an extra attribute as a part of a header's name.
pub(super) fn escaped(key: &str) -> impl Display {
    utf8_percent_encode(key, ESCAPED)
}

pub(super) fn name(text: &str) -> Result<HeaderValue, NotAHeader> {
    if text.is_empty() { Err(NotAHeader) } else { value(text) }
}

/// As bytes: names need not be ASCII. Blanks at the ends would be lost on the way (RFC 9110 §5.5),
/// and with them the difference between one name and another.
pub(super) fn value(text: &str) -> Result<HeaderValue, NotAHeader> {
    if text.starts_with([' ', '\t']) || text.ends_with([' ', '\t']) {
        return Err(NotAHeader);
    }
    HeaderValue::from_bytes(text.as_bytes()).map_err(|_| NotAHeader)
}

#[cfg(test)]
mod tests;
