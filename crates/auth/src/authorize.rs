//! May this user do this? The answer is a [`Permission`], which only this module can make.
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

/// Decides what users may do. Share it behind an `Arc`.
#[derive(Debug)]
pub struct Authorizer {
    /// Whether `system:masters` may do everything without being reviewed.
    pub(crate) masters: bool,
    pub(crate) always_allowed: AlwaysAllowed,
    pub(crate) decider: Decider,
    pub(crate) metrics: Metrics,
}

/// What decides about everything that is not allowed to all.
#[derive(Debug)]
pub(crate) enum Decider {
    Hub(Box<HubAuthorizer>),
    Standalone(Standalone),
    /// Everything is allowed, for debugging on one's own machine.
    Nobody,
}

/// Proof that `user` may do what `attributes` say.
#[derive(Debug, Clone)]
pub struct Permission {
    user: Arc<User>,
    attributes: Attributes,
}

/// The request may not go on.
#[derive(Debug, thiserror::Error)]
pub enum AuthorizationError {
    /// Answer 403. `reason` may be empty.
    #[error("user {:?} is not allowed: {reason}", user.name)]
    Forbidden { user: Arc<User>, attributes: Attributes, reason: String },
    /// The hub could not be asked. Answer 500, never let the request pass; the text is fit for the
    /// caller.
    #[error("{0}")]
    Review(#[source] ReviewError),
    /// Too many reviews wait for the hub: answer 429, nothing was asked.
    #[error("{0}")]
    Busy(#[source] TooManyReviews),
}

// === impl Authorizer ===

impl Authorizer {
    /// Decides whether `user` may do what `attributes` say, by a cached answer where there is one.
    pub async fn authorize(&self, user: Arc<User>, attributes: Attributes) -> Result<Permission, AuthorizationError> {
        self.counted(self.decide(user, attributes, None).await)
    }

    /// The same by an answer that was asked for at `since` or later: something may have changed
    /// then.
    pub async fn authorize_since(
        &self,
        user: Arc<User>,
        attributes: Attributes,
        since: Option<Instant>,
    ) -> Result<Permission, AuthorizationError> {
        self.counted(self.decide(user, attributes, since).await)
    }

    /// The same, if the hub is remembered to have said that `user` may: it is not asked.
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

    /// Decides whether `user` may do what `attributes` say on the member `cluster`, where they are
    /// the member's own and the hub's rules about its own objects are taken for rules about the
    /// member's.
    ///
    /// Paths that are open to everybody here are not therefore open on a member. A policy file
    /// knows clusters and verbs only, and decides by these.
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
