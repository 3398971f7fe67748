//! Reads input of front proxies and hubs for tests with generated input. Not a stable interface: it
//! changes with the code.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;

use crate::authorize::decision;
use crate::certificate::{Subject, validity};
use crate::credentials::{Credentials, ProtocolToken, bearer};
use crate::identity_headers::{IdentityCache, IdentityHeaders};
use crate::review::{Decision, Opinion, ReviewError, no_status, read};
use crate::token;
use crate::user::User;

/// State of one connection of a front proxy with the usual header names.
#[derive(Debug)]
pub struct FrontProxied {
    names: IdentityHeaders,
    known: IdentityCache,
}

/// What a request's headers say of its caller.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// Of `Authorization`.
    pub bearer: Option<Vec<u8>>,
    /// Of a WebSocket handshake.
    pub protocol: Option<Result<Vec<u8>, &'static str>>,
    /// The user to become, and of how many values a permission is needed for that.
    pub impersonated: Option<Result<(User, usize), &'static str>>,
}

/// Who a certificate says that its holder is.
#[derive(Debug, PartialEq, Eq)]
pub struct Holder {
    pub common_name: String,
    pub organizations: Vec<String>,
    /// In seconds since 1970.
    pub valid: (u64, u64),
}

/// Removes the claims from `headers`, for a gateway without a front proxy.
pub fn claims(headers: &mut HeaderMap) -> Claims {
    let Credentials { authorization, protocol, impersonation } = Credentials::take(headers, None);
    let protocol = match protocol {
        ProtocolToken::Absent => None,
        ProtocolToken::Token(token) => Some(Ok(token)),
        ProtocolToken::Malformed(why) => Some(Err(why)),
    };
    let impersonated = impersonation.map(|wanted| wanted.resolved().map_err(|malformed| malformed.0));
    Claims { bearer: authorization.as_ref().and_then(bearer).map(<[u8]>::to_vec), protocol, impersonated }
}

/// Reads a certificate. None if it is none.
pub fn holder(der: &[u8]) -> Option<Holder> {
    let Subject { common_name, organizations } = Subject::parse(der).ok()?;
    let valid = validity(der).ok()?;
    Some(Holder { common_name, organizations, valid: (valid.from, valid.until) })
}

/// The holder of a token, from a hub's response with `code` and `body`.
///
/// # Errors
/// The response is no answer to a review.
pub fn reviewed(code: StatusCode, body: &[u8]) -> Result<Option<User>, ReviewError> {
    let review: TokenReview = read(code, body)?;
    review.status.map(token::user).ok_or_else(no_status)
}

/// Whether a hub's response allows the reviewed request.
///
/// # Errors
/// The response is no answer to a review.
pub fn allowed(code: StatusCode, body: &[u8]) -> Result<bool, ReviewError> {
    let review: SubjectAccessReview = read(code, body)?;
    Ok(decision(review.status.ok_or_else(no_status)?) == Decision::Allowed)
}

// === impl FrontProxied ===

impl FrontProxied {
    /// The user in `headers`, if there is one. Fails with the reason if a user is refused.
    pub fn user(&mut self, headers: &HeaderMap) -> Result<Option<Arc<User>>, Arc<str>> {
        match self.known.user(headers, &self.names, 1) {
            Opinion::User(user) => Ok(Some(user)),
            // No hub is involved.
            Opinion::None | Opinion::Failed(_) => Ok(None),
            Opinion::Refused(why) => Err(why),
        }
    }
}

impl Default for FrontProxied {
    fn default() -> Self {
        let one = |name: &str| vec![name.to_owned()];
        let names = IdentityHeaders::new(
            &one("X-Remote-User"),
            &one("X-Remote-Uid"),
            &one("X-Remote-Group"),
            &one("X-Remote-Extra-"),
        );
        Self { names, known: IdentityCache::default() }
    }
}
