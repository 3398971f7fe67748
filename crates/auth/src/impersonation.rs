//! `Impersonate-*` headers with the hub's semantics: each impersonated value needs its own
//! `impersonate` permission.
//!
//! Follows `k8s.io/apiserver/pkg/endpoints/filters/impersonation/impersonation.go`, with two
//! differences: headers that ask for impersonation without a user get 400 (not 500), and so does
//! any unknown `Impersonate-*` header, which is never ignored.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use api::access::{Attributes, ResourceAttributes, Verb};
use http::{HeaderMap, HeaderValue};

use crate::authorize::{AuthorizationError, Authorizer};
use crate::identity_headers::unescape_key;
use crate::user::{self, ALL_AUTHENTICATED, ALL_SERVICE_ACCOUNTS, ALL_UNAUTHENTICATED, ANONYMOUS, User};

/// The prefix of all these headers.
pub(crate) const PREFIX: &str = "impersonate-";
const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA_PREFIX: &str = "impersonate-extra-";
/// Most groups and extra values that one request may impersonate: each costs a review on the hub.
const MAX_VALUES: usize = 1024;

/// The impersonation that one request asks for.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Impersonation {
    user: Option<HeaderValue>,
    uid: Option<HeaderValue>,
    groups: Vec<HeaderValue>,
    /// Keys as in a [`User`].
    extra: Vec<(String, HeaderValue)>,
    unknown: bool,
}

/// Why the headers are invalid.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// Why the request is refused. It impersonates no user.
#[derive(Debug)]
pub(crate) enum ImpersonationError {
    Malformed(Malformed),
    /// A required permission is missing, or could not be reviewed.
    Authorization(AuthorizationError),
}

// === impl Impersonation ===

impl Impersonation {
    pub(crate) fn read(headers: &HeaderMap) -> Self {
        let mut wanted = Self::default();
        for (name, value) in headers {
            let name = name.as_str();
            match name {
                USER => drop(wanted.user.get_or_insert_with(|| value.clone())),
                UID => drop(wanted.uid.get_or_insert_with(|| value.clone())),
                GROUP => wanted.groups.push(value.clone()),
                _ => match name.strip_prefix(EXTRA_PREFIX) {
                    Some(key) => wanted.extra.push((unescape_key(key), value.clone())),
                    None => wanted.unknown |= name.starts_with(PREFIX),
                },
            }
        }
        wanted
    }

    /// Returns the impersonated user after all requested values are allowed for `requestor`.
    pub(crate) async fn apply(
        self,
        requestor: Arc<User>,
        authorizer: &Authorizer,
    ) -> Result<Arc<User>, ImpersonationError> {
        let (wanted, reviews) = self.resolve().map_err(ImpersonationError::Malformed)?;
        for attributes in reviews {
            let outcome = authorizer.authorize(Arc::clone(&requestor), attributes).await;
            outcome.map_err(ImpersonationError::Authorization)?;
        }
        Ok(Arc::new(wanted))
    }

    /// The user, and of how many values a permission is needed, for fuzz targets.
    pub(crate) fn resolved(self) -> Result<(User, usize), Malformed> {
        self.resolve().map(|(user, reviews)| (user, reviews.len()))
    }

    /// The requested user, and the permissions needed to become that user.
    fn resolve(self) -> Result<(User, Vec<Attributes>), Malformed> {
        if self.unknown {
            return Err(Malformed("unknown Impersonate header"));
        }
        if self.groups.len() + self.extra.len() > MAX_VALUES {
            return Err(Malformed("too many values in Impersonate headers"));
        }
        let name = text(self.user.as_ref())?.filter(|name| !name.is_empty());
        let name = name.ok_or(Malformed("requested impersonation without an Impersonate-User"))?;
        let uid = text(self.uid.as_ref())?.filter(|uid| !uid.is_empty());

        let mut wanted = User { name, uid, ..User::default() };
        let mut reviews = vec![user_review(&wanted.name)];
        if self.groups.is_empty()
            && let Some((namespace, _)) = user::service_account(&wanted.name)
        {
            // A ServiceAccount's groups follow from its name, so they need no permission.
            wanted.groups = vec![ALL_SERVICE_ACCOUNTS.to_owned(), format!("{ALL_SERVICE_ACCOUNTS}:{namespace}")];
        }
        for group in &self.groups {
            let group = text(Some(group))?.unwrap_or_default();
            reviews.push(review("", "groups", Cow::default(), None, &group));
            wanted.groups.push(group);
        }
        wanted.extra = extra(self.extra, &mut reviews)?;
        if let Some(uid) = &wanted.uid {
            reviews.push(review("authentication.k8s.io", "uids", Cow::default(), None, uid));
        }
        add_system_group(&mut wanted);
        Ok((wanted, reviews))
    }
}

fn extra(
    values: Vec<(String, HeaderValue)>,
    reviews: &mut Vec<Attributes>,
) -> Result<BTreeMap<String, Vec<String>>, Malformed> {
    let mut extra = BTreeMap::<String, Vec<String>>::new();
    for (key, value) in values {
        let value = text(Some(&value))?.unwrap_or_default();
        reviews.push(review("authentication.k8s.io", "userextras", key.clone().into(), None, &value));
        extra.entry(key).or_default().push(value);
    }
    Ok(extra)
}

fn user_review(name: &str) -> Attributes {
    match user::service_account(name) {
        Some((namespace, name)) => review("", "serviceaccounts", Cow::default(), Some(namespace), name),
        None => review("", "users", Cow::default(), None, name),
    }
}

fn review(
    group: &'static str,
    resource: &'static str,
    subresource: Cow<'static, str>,
    namespace: Option<&str>,
    name: &str,
) -> Attributes {
    Attributes::Resource(ResourceAttributes {
        verb: Verb::Impersonate,
        group: group.into(),
        version: if group.is_empty() { "".into() } else { "v1".into() },
        resource: resource.into(),
        subresource,
        namespace: namespace.map(Arc::from),
        name: Some(Arc::from(name)),
        field_selector: None,
        label_selector: None,
    })
}

/// The impersonated user is authenticated, or explicitly not.
fn add_system_group(user: &mut User) {
    let group = if user.name == ANONYMOUS { ALL_UNAUTHENTICATED } else { ALL_AUTHENTICATED };
    if !user.is_in(group) && !user.is_in(ALL_UNAUTHENTICATED) {
        user.groups.push(group.to_owned());
    }
}

fn text(value: Option<&HeaderValue>) -> Result<Option<String>, Malformed> {
    let Some(value) = value else { return Ok(None) };
    let text = std::str::from_utf8(value.as_bytes()).map_err(|_| Malformed("an Impersonate header is not UTF-8"))?;
    Ok(Some(text.to_owned()))
}

#[cfg(test)]
mod tests;
