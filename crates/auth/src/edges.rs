//! Reads input of front proxies and hubs for tests with generated input. Not a stable interface: it
//! changes with the code.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;

use crate::authorize::decision;
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
