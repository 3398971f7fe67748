//! What one authentication method says about a request.
//!
//! The three outcomes of `authenticator.Request` in `k8s.io/apiserver`: the first success wins; a
//! request that no method recognises is anonymous; a request that some method refused is not.

use std::sync::Arc;

use crate::review::ReviewError;
use crate::user::User;

/// The outcome of one authentication method.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Opinion {
    /// Nothing in the request concerns this method.
    None,
    User(Arc<User>),
    /// The request carries a credential of this method, and it is not good. The text is for the
    /// log.
    Refused(Arc<str>),
    /// The credential could not be checked.
    Failed(ReviewError),
}
