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

use self::hub::Subject;
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
        let subject = Subject { user, attributes };
        let decided = self.decide(&subject, None).await;
        self.judged(subject, decided)
    }

    /// The same, but only with a review from `since` or later, because permissions may have changed
    /// then.
    pub async fn authorize_since(
        &self,
        user: Arc<User>,
        attributes: Attributes,
        since: Option<Instant>,
    ) -> Result<Permission, AuthorizationError> {
        let subject = Subject { user, attributes };
        let decided = self.decide(&subject, since).await;
        self.judged(subject, decided)
    }

    /// The same, but only if a cached review allows it. Does not ask the hub.
    pub fn remembered(&self, user: Arc<User>, attributes: Attributes, since: Option<Instant>) -> Option<Permission> {
        let Decider::Hub(hub) = &self.decider else { return None };
        let (user, attributes) = hub.remembered(user, attributes, since)?;
        self.metrics.authorized(Verdict::Allowed);
        Some(Permission { user, attributes })
    }

    /// Only looks at the subject: a future of each call that took it would move it once more.
    async fn decide(&self, subject: &Subject, since: Option<Instant>) -> Result<Decision, AuthorizationError> {
        let Subject { user, attributes } = subject;
        if self.masters && user.is_in(MASTERS) || self.always_allowed.contains(attributes) {
            return Ok(Decision::Allowed);
        }
        match &self.decider {
            Decider::Hub(hub) => hub.decide(subject, since).await,
            Decider::Standalone(policy) => Ok(policy.decide(user, attributes)),
            Decider::Nobody => Ok(Decision::Allowed),
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
        let subject = Subject { user, attributes };
        let decided = self.decide_proxied(&subject, cluster).await;
        self.judged(subject, decided)
    }

    async fn decide_proxied(&self, subject: &Subject, cluster: &str) -> Result<Decision, AuthorizationError> {
        let Subject { user, attributes } = subject;
        if self.masters && user.is_in(MASTERS) {
            return Ok(Decision::Allowed);
        }
        match &self.decider {
            Decider::Hub(hub) => hub.decide(subject, None).await,
            Decider::Standalone(policy) => Ok(policy.decide_proxied(user, cluster, attributes)),
            Decider::Nobody => Ok(Decision::Allowed),
        }
    }

    /// Counts the decision about `subject`, and makes the permission of it.
    fn judged(
        &self,
        subject: Subject,
        decided: Result<Decision, AuthorizationError>,
    ) -> Result<Permission, AuthorizationError> {
        let Subject { user, attributes } = subject;
        match decided {
            Ok(Decision::Allowed) => {
                self.metrics.authorized(Verdict::Allowed);
                Ok(Permission { user, attributes })
            }
            Ok(Decision::Denied { reason }) => {
                self.metrics.authorized(Verdict::Denied);
                Err(AuthorizationError::Forbidden { user, attributes, reason: reason.as_ref().to_owned() })
            }
            Err(error) => {
                self.metrics.authorized(Verdict::Failed);
                Err(error)
            }
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
