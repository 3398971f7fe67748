//! Why a request is not authenticated.

use std::sync::Arc;

use api::access::Attributes;

use crate::authorize::AuthorizationError;
use crate::impersonation::{ImpersonationError, Malformed};
use crate::review::{ReviewError, TooManyReviews};
use crate::user::User;

/// The caller is unknown, or may not be the user that it wants to be.
#[derive(Debug, thiserror::Error)]
pub enum AuthenticationError {
    /// Respond with 401. `why` is for the log, not for the caller.
    #[error("not authenticated: {why}")]
    Unauthorized { why: String },
    /// The caller may not impersonate as requested. Respond with 403.
    #[error("user {:?} may not impersonate: {reason}", user.name)]
    Forbidden { user: Arc<User>, attributes: Attributes, reason: String },
    /// The identity headers are contradictory. Respond with 400; the text is for the caller.
    #[error("{0}")]
    BadRequest(String),
    /// The review has no result. Never let the request pass; the text is for the caller.
    #[error("{0}")]
    Review(#[source] ReviewError),
    /// Too many reviews wait for the hub: answer 429, nothing was asked.
    #[error("{0}")]
    Busy(#[source] TooManyReviews),
}

/// The request has no valid credential.
#[derive(Debug)]
pub(super) enum NotAuthenticated {
    Refused(String),
    Failed(ReviewError),
}

/// The rejections of a request so far.
#[derive(Default)]
pub(super) struct Rejections {
    pub(super) refused: Vec<Arc<str>>,
    pub(super) failed: Option<ReviewError>,
}

// === impl AuthenticationError ===

impl From<ImpersonationError> for AuthenticationError {
    fn from(error: ImpersonationError) -> Self {
        match error {
            ImpersonationError::Malformed(Malformed(why)) => Self::BadRequest(why.to_owned()),
            ImpersonationError::Authorization(AuthorizationError::Forbidden { user, attributes, reason }) => {
                Self::Forbidden { user, attributes, reason }
            }
            ImpersonationError::Authorization(AuthorizationError::Review(error)) => Self::Review(error),
            ImpersonationError::Authorization(AuthorizationError::Busy(crowd)) => Self::Busy(crowd),
        }
    }
}

// === impl NotAuthenticated ===

impl From<NotAuthenticated> for AuthenticationError {
    fn from(unproven: NotAuthenticated) -> Self {
        match unproven {
            NotAuthenticated::Refused(why) => Self::Unauthorized { why },
            NotAuthenticated::Failed(ReviewError::Busy(crowd)) => Self::Busy(crowd),
            NotAuthenticated::Failed(error) => Self::Review(error),
        }
    }
}

// === impl Rejections ===

impl Rejections {
    /// A credential that could not be checked counts more than a refused one: it may have been
    /// good, and a 401 would make its owner fetch another one.
    pub(super) fn into_result(self) -> Result<(), NotAuthenticated> {
        match self.failed {
            Some(error) => Err(NotAuthenticated::Failed(error)),
            None if self.refused.is_empty() => Ok(()),
            None => Err(NotAuthenticated::Refused(self.refused.join("; "))),
        }
    }
}
