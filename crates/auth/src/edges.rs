//! What a front proxy writes and what a hub answers, as they are read, for tests on generated
//! input. No interface of the library: it follows the code.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;

use crate::authorize::decision;
use crate::identity_headers::{IdentityCache, IdentityHeaders};
use crate::review::{Decision, Opinion, ReviewError, no_status, read};
use crate::token;
use crate::user::User;

/// What is known on one connection of a front proxy with the usual names of headers.
#[derive(Debug)]
pub struct FrontProxied {
    names: IdentityHeaders,
    known: IdentityCache,
}

/// Whose a token is that a hub answered about with `code` and `body`.
///
/// # Errors
/// It is no answer to a review.
pub fn reviewed(code: StatusCode, body: &[u8]) -> Result<Option<User>, ReviewError> {
    let review: TokenReview = read(code, body)?;
    review.status.map(token::user).ok_or_else(no_status)
}

/// Whether a hub that answered so allows what it was asked about.
///
/// # Errors
/// It is no answer to a review.
pub fn allowed(code: StatusCode, body: &[u8]) -> Result<bool, ReviewError> {
    let review: SubjectAccessReview = read(code, body)?;
    Ok(decision(review.status.ok_or_else(no_status)?) == Decision::Allowed)
}

// === impl FrontProxied ===

impl FrontProxied {
    /// The user in `headers`, if there is one; the reason why a user is refused.
    pub fn user(&mut self, headers: &HeaderMap) -> Result<Option<Arc<User>>, Arc<str>> {
        match self.known.user(headers, &self.names, 1) {
            Opinion::User(user) => Ok(Some(user)),
            // No hub is asked.
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
