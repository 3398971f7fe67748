//! Decides by SubjectAccessReview, and caches the decisions for seconds.
//!
//! `k8s.io/apiserver/plugin/pkg/authorizer/webhook/webhook.go`: the cache key is the whole review.
//! A review with a large request-controlled part, or about a large user, is not cached, so that a
//! caller cannot fill the memory with long names.

mod spec;

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use api::access::Attributes;
use k8s_openapi::api::authorization::v1 as k8s;
use tokio::runtime::Handle;
use tokio::time::Instant;

use self::spec::spec;
use super::AuthorizationError;
use crate::cache::{Cache, ENTRY, Limits, Loaded};
use crate::config::ReviewConfig;
use crate::metrics::{Kind, Metrics};
use crate::review::{Decision, QueueKey, ReviewError, ReviewProgress, Reviewer};
use crate::user::User;

pub(crate) use self::spec::decision;

/// Reviews with request-controlled attributes of this length or more, in bytes, are not cached
/// (`maxControlledAttrCacheSize`).
const MAX_CACHED_BYTES: usize = 10_000;
/// Most decisions about users, in bytes. With a limit on their number, a few users that work on ten
/// thousand clusters in turn would cause a review for each request. This holds some 50,000 pairs of
/// user and cluster, or 8,000 of the longest requests.
const USERS: Limits = Limits::of_users(96 << 20);
/// Decisions about anonymous users. These choose their requests, so they have few entries, and take
/// none from other users. Ten wait for each permit.
const ANONYMOUS: Limits = Limits { kept: 1024, pending: 100 };

#[derive(Debug)]
pub(crate) struct HubAuthorizer {
    users: Cache<Subject, Decision>,
    anonymous: Cache<Subject, Decision>,
    reviewer: Arc<Reviewer>,
    lifetimes: Lifetimes,
    sharing: ReviewConfig,
    metrics: Metrics,
}

/// How long decisions are cached. Zero turns the cache off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lifetimes {
    pub(crate) allowed: Duration,
    pub(crate) denied: Duration,
}

/// The contents of a review. Equal subjects get the same decision, and different ones never share
/// one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) user: Arc<User>,
    pub(crate) attributes: Attributes,
}

// === impl Subject ===

impl Hash for Subject {
    /// Groups are compared, but not hashed, because they are many and rarely differ for one name.
    /// The parts that callers choose are hashed completely, and so are UID and extra attributes,
    /// because there each token of a ServiceAccount has its own ID. A caller that may create tokens
    /// could otherwise fill one slot with thousands of subjects, and every caller would compare
    /// them one by one.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.user.name.hash(state);
        self.user.uid.hash(state);
        self.user.extra.hash(state);
        self.attributes.hash(state);
    }
}

// === impl HubAuthorizer ===

impl HubAuthorizer {
    pub(crate) fn new(
        reviewer: Arc<Reviewer>,
        lifetimes: Lifetimes,
        sharing: ReviewConfig,
        runtime: &Handle,
        metrics: Metrics,
    ) -> Self {
        let users = Cache::weighing(runtime.clone(), USERS, sharing.of_one(USERS), bytes);
        let anonymous = Cache::new(runtime.clone(), ANONYMOUS);
        Self { users, anonymous, reviewer, lifetimes, sharing, metrics }
    }

    /// Copies the subject only for a review. Ignores decisions from before `since`.
    pub(crate) async fn decide(
        &self,
        subject: &Subject,
        since: Option<Instant>,
    ) -> Result<Decision, AuthorizationError> {
        let kept = self.cache(&subject.user).get_since(subject, since);
        self.metrics.cache_lookup(Kind::Access, kept.is_some());
        match kept {
            Some(decision) => Ok(decision),
            None => Box::pin(self.review(subject, since)).await,
        }
    }

    /// The same, but only if a cached decision allows it. Does not count a miss, because the caller
    /// then asks again.
    pub(crate) fn remembered(
        &self,
        user: Arc<User>,
        attributes: Attributes,
        since: Option<Instant>,
    ) -> Option<(Arc<User>, Attributes)> {
        let subject = Subject { user, attributes };
        let Decision::Allowed = self.cache(&subject.user).get_since(&subject, since)? else { return None };
        self.metrics.cache_lookup(Kind::Access, true);
        Some((subject.user, subject.attributes))
    }

    async fn review(&self, subject: &Subject, since: Option<Instant>) -> Result<Decision, AuthorizationError> {
        let (queue, cache) = (self.queue(&subject.user), self.cache(&subject.user));
        let owner = queue.owner();
        let load = |progress| review(Arc::clone(&self.reviewer), queue, progress, spec(subject), self.lifetimes);
        let beyond = subject.user.bytes().saturating_sub(User::LARGEST_KEPT);
        let bytes = controlled_bytes(&subject.attributes) + beyond;
        let outcome = if bytes < MAX_CACHED_BYTES {
            cache.get_or_load_for(owner, Arc::new(subject.clone()), since, load).await
        } else {
            // Counted by size: a limit on how many wait is then one on memory too.
            cache.load_alone(owner, bytes.div_ceil(MAX_CACHED_BYTES), load).await
        };
        outcome.map_err(|error| match error {
            ReviewError::Busy(crowd) => {
                self.metrics.turned_away(Kind::Access);
                AuthorizationError::Busy(crowd)
            }
            other => AuthorizationError::Review(other),
        })
    }

    /// Anonymous users have a queue and a memory of their own, however they got that name: through
    /// the hub's front proxy too, behind which they are as many and as nameless.
    fn queue(&self, user: &User) -> QueueKey {
        if user.is_anonymous() { QueueKey::Anonymous } else { QueueKey::Users(self.sharing.owner(user)) }
    }

    fn cache(&self, user: &User) -> &Cache<Subject, Decision> {
        if user.is_anonymous() { &self.anonymous } else { &self.users }
    }
}

async fn review(
    reviewer: Arc<Reviewer>,
    queue: QueueKey,
    progress: ReviewProgress,
    spec: k8s::SubjectAccessReviewSpec,
    lifetimes: Lifetimes,
) -> Loaded<Decision> {
    let status = reviewer.access(queue, &progress, spec).await?;
    if let Some(error) = status.evaluation_error.as_deref().filter(|error| !error.is_empty()) {
        tracing::debug!(error, "the hub could not evaluate every rule of an access review");
    }
    Ok(match decision(status) {
        Decision::Allowed => (Decision::Allowed, lifetimes.allowed),
        denied @ Decision::Denied { .. } => (denied, lifetimes.denied),
    })
}

/// Bytes of a cached decision. Counts the user each time, although most entries share one, because
/// there is no guarantee for how long.
fn bytes(subject: &Subject, decision: &Decision) -> usize {
    let reason = match decision {
        Decision::Allowed => 0,
        Decision::Denied { reason } => reason.len(),
    };
    ENTRY + subject.user.bytes() + controlled_bytes(&subject.attributes) + reason
}

/// Bytes of a review that its caller chose.
fn controlled_bytes(attributes: &Attributes) -> usize {
    let optional = |text: &Option<Arc<str>>| text.as_ref().map_or(0, |text| text.len());
    match attributes {
        Attributes::NonResource { path, verb } => path.len() + verb.len(),
        Attributes::Resource(it) => {
            [&it.group, &it.version, &it.resource, &it.subresource].iter().map(|text| text.len()).sum::<usize>()
                + [&it.namespace, &it.name, &it.field_selector, &it.label_selector]
                    .iter()
                    .map(|text| optional(text))
                    .sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher as _;

    use super::*;

    /// A caller that may create tokens of one account could otherwise fill one slot of the table,
    /// which all callers would search.
    #[test]
    fn tokens_of_one_account_are_found_apart() {
        let hasher = std::hash::RandomState::new();
        let of = |token: usize| {
            let id = ("authentication.kubernetes.io/credential-id".to_owned(), vec![format!("JTI={token}")]);
            let user = User { name: "system:serviceaccount:ns:a".to_owned(), extra: [id].into(), ..User::default() };
            let attributes = Attributes::NonResource { path: "/x".into(), verb: "get".into() };
            hasher.hash_one(Subject { user: Arc::new(user), attributes })
        };
        let slots: std::collections::HashSet<u64> = (0..1000).map(of).collect();
        assert!(slots.len() > 990, "{} slots for 1,000 tokens", slots.len());
    }
}
