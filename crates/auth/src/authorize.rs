//! Decides whether a user may do something. The result is a [`Permission`], which only this module
//! can make.
//!
//! Order as in `k8s.io/apiserver/pkg/server/options/authorization.go`: privileged groups,
//! always-allowed paths, then the hub's SubjectAccessReview, or the policy file when there is no
//! hub.

mod hub;
mod paths;

use std::sync::Arc;

use api::access::Attributes;
use tokio::time::Instant;

use crate::metrics::{Metrics, Verdict};
use crate::review::{Decision, ReviewError, TooManyReviews};
use crate::standalone::Standalone;
use crate::user::{MASTERS, User};

pub(crate) use self::hub::{HubAuthorizer, Lifetimes, decision};
pub(crate) use self::paths::AlwaysAllowed;
pub use self::paths::PathError;

/// Decides what users may do. Shared behind an `Arc`.
#[derive(Debug)]
pub struct Authorizer {
    /// Whether `system:masters` may do everything without being reviewed.
    pub(crate) masters: bool,
    pub(crate) always_allowed: AlwaysAllowed,
    pub(crate) decider: Decider,
    pub(crate) metrics: Metrics,
}

/// Decides about requests that are not allowed to all callers.
#[derive(Debug)]
pub(crate) enum Decider {
    Hub(Box<HubAuthorizer>),
    Standalone(Standalone),
    /// Allows everything, for debugging on a developer's machine.
    Nobody,
}

/// Proof that `user` may do what `attributes` describe.
#[derive(Debug, Clone)]
pub struct Permission {
    user: Arc<User>,
    attributes: Attributes,
}

/// Why the request may not continue.
#[derive(Debug, thiserror::Error)]
pub enum AuthorizationError {
    /// Respond with 403. `reason` may be empty.
    #[error("user {:?} is not allowed: {reason}", user.name)]
    Forbidden { user: Arc<User>, attributes: Attributes, reason: String },
    /// The review has no result. Respond with 500, and never let the request pass. The text is for
    /// the caller.
    #[error("{0}")]
    Review(#[source] ReviewError),
    /// Too many reviews wait for the hub: answer 429, nothing was asked.
    #[error("{0}")]
    Busy(#[source] TooManyReviews),
}

// === impl Authorizer ===

impl Authorizer {
    /// Decides whether `user` may do what `attributes` describe, with a cached review if there is
    /// one.
    pub async fn authorize(&self, user: Arc<User>, attributes: Attributes) -> Result<Permission, AuthorizationError> {
        self.counted(self.decide(user, attributes, None).await)
    }

    /// The same, but only with a review from `since` or later, because permissions may have changed
    /// then.
    pub async fn authorize_since(
        &self,
        user: Arc<User>,
        attributes: Attributes,
        since: Option<Instant>,
    ) -> Result<Permission, AuthorizationError> {
        self.counted(self.decide(user, attributes, since).await)
    }

    /// The same, but only if a cached review allows it. Does not ask the hub.
    pub fn remembered(&self, user: Arc<User>, attributes: Attributes, since: Option<Instant>) -> Option<Permission> {
        let Decider::Hub(hub) = &self.decider else { return None };
        let (user, attributes) = hub.remembered(user, attributes, since)?;
        self.metrics.authorized(Verdict::Allowed);
        Some(Permission { user, attributes })
    }

    async fn decide(
        &self,
        user: Arc<User>,
        attributes: Attributes,
        since: Option<Instant>,
    ) -> Result<Permission, AuthorizationError> {
        if self.masters && user.is_in(MASTERS) || self.always_allowed.contains(&attributes) {
            return Ok(Permission { user, attributes });
        }
        match &self.decider {
            Decider::Hub(hub) => judged(hub.decide(user, attributes, since).await?),
            Decider::Standalone(policy) => {
                let decision = policy.decide(&user, &attributes);
                judged((user, attributes, decision))
            }
            Decider::Nobody => Ok(Permission { user, attributes }),
        }
    }

    /// Decides whether `user` may do what `attributes` describe on the member `cluster`. The
    /// attributes are the member's, and the hub's rules for its own objects are used as rules for
    /// the member's.
    ///
    /// Paths that are always allowed here are not therefore allowed on a member. A policy file only
    /// has clusters and verbs, and decides by these.
    pub async fn authorize_proxied(
        &self,
        user: Arc<User>,
        cluster: &str,
        attributes: Attributes,
    ) -> Result<Permission, AuthorizationError> {
        self.counted(self.decide_proxied(user, cluster, attributes).await)
    }

    async fn decide_proxied(
        &self,
        user: Arc<User>,
        cluster: &str,
        attributes: Attributes,
    ) -> Result<Permission, AuthorizationError> {
        if self.masters && user.is_in(MASTERS) {
            return Ok(Permission { user, attributes });
        }
        match &self.decider {
            Decider::Hub(hub) => judged(hub.decide(user, attributes, None).await?),
            Decider::Standalone(policy) => {
                let decision = policy.decide_proxied(&user, cluster, &attributes);
                judged((user, attributes, decision))
            }
            Decider::Nobody => Ok(Permission { user, attributes }),
        }
    }

    fn counted(&self, outcome: Result<Permission, AuthorizationError>) -> Result<Permission, AuthorizationError> {
        self.metrics.authorized(match &outcome {
            Ok(_) => Verdict::Allowed,
            Err(AuthorizationError::Forbidden { .. }) => Verdict::Denied,
            Err(AuthorizationError::Review(_) | AuthorizationError::Busy(_)) => Verdict::Failed,
        });
        outcome
    }
}

fn judged((user, attributes, decision): (Arc<User>, Attributes, Decision)) -> Result<Permission, AuthorizationError> {
    match decision {
        Decision::Allowed => Ok(Permission { user, attributes }),
        Decision::Denied { reason } => {
            Err(AuthorizationError::Forbidden { user, attributes, reason: reason.as_ref().to_owned() })
        }
    }
}

// === impl Permission ===

impl Permission {
    pub fn user(&self) -> &Arc<User> {
        &self.user
    }

    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }
}

#[cfg(test)]
mod tests;
