//! Sends TokenReviews and SubjectAccessReviews to the hub, with limits on time, attempts and
//! concurrency.
//!
//! Retries follow `k8s.io/apiserver/pkg/util/webhook.DefaultShouldRetry`: only after answers that
//! suggest that another attempt may succeed. Results are neither judged nor cached here.

mod hub;
mod permits;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use k8s_openapi::api::authentication::v1::{TokenReviewSpec, TokenReviewStatus};
use k8s_openapi::api::authorization::v1::{SubjectAccessReviewSpec, SubjectAccessReviewStatus};
use net::backoff::Backoff;
use tokio::time::{Instant, sleep, timeout};

use crate::metrics::{Kind, Metrics};
use crate::user::{User, in_words};

use self::permits::ReviewPermits;

pub use self::hub::HubClients;
pub(crate) use self::hub::{HubReviews, no_status, read};
pub(crate) use self::permits::QueueKey;
pub use self::permits::{AtHubGuard, ReviewProgress};

/// Timeout of one attempt (kube-apiserver's request timeout of `--authentication-token-webhook`).
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// Most attempts of one review (`DefaultAuthWebhookRetryBackoff.Steps`).
const MAX_ATTEMPTS: u32 = 5;
/// Pauses between them: from 500 ms, ×1.5, with up to a fifth more
/// (`DefaultAuthWebhookRetryBackoff` in `k8s.io/apiserver/pkg/server/options/authentication.go`).
const AGAIN: Backoff =
    Backoff { first: Duration::from_millis(600), longest: Duration::from_secs(6), factor: 1.5, chance: 1.0 / 6.0 };
/// Longest time of a review with all its attempts and its wait for a permit: callers have given up
/// by then.
const REVIEW_DEADLINE: Duration = Duration::from_secs(30);
/// Longest `Retry-After` that is used. A longer one is shortened, because the deadline would end
/// the review anyway.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(10);

/// The source of reviews: the hub, or a test's script. One call is one attempt.
pub trait Reviews: Send + Sync + 'static {
    fn token_review(&self, spec: TokenReviewSpec) -> BoxFuture<'_, Result<TokenReviewStatus, ReviewError>>;

    fn subject_access_review(
        &self,
        spec: SubjectAccessReviewSpec,
    ) -> BoxFuture<'_, Result<SubjectAccessReviewStatus, ReviewError>>;
}

/// Why a review has no answer. The texts are for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReviewError {
    /// The hub responded with an error, or not at all.
    #[error("the review on the hub failed: {message}")]
    Hub { message: Arc<str>, retry: Retry },
    #[error("the review on the hub timed out")]
    TimedOut,
    #[error("{0}")]
    Busy(TooManyReviews),
    /// The runtime that asks the hub is shutting down.
    #[error("the review on the hub was abandoned")]
    Lost,
}

/// The decision of a SubjectAccessReview, or of the policy file in its place. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    Allowed,
    Denied { reason: Arc<str> },
}

/// The opinion of one authentication method about a request.
///
/// The three outcomes of `authenticator.Request` in `k8s.io/apiserver`: the first success wins; a
/// request that no method recognizes is anonymous; a request that a method refused is not.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Opinion {
    /// The request has nothing for this method.
    None,
    User(Arc<User>),
    /// The request has a credential for this method, which is invalid. The text is for the log.
    Refused(Arc<str>),
    /// The credential could not be checked.
    Failed(ReviewError),
}

/// So many reviews are waiting for the hub that there is no room for one more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TooManyReviews {
    #[error("too many reviews are waiting for the hub")]
    OfAll,
    /// Of one owner ([`User::owner`]), while there may be room for others.
    #[error("too many reviews of {} are waiting for the hub (limit {most})", in_words(.owner))]
    OfOne { owner: Arc<str>, most: usize },
}

/// Whether another attempt may do better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    Never,
    /// After the next delay of the back-off.
    Backoff,
    /// After the time that the hub named.
    After(Duration),
}

/// Sends reviews with retries, timeouts and a limit on concurrency.
pub(crate) struct Reviewer {
    reviews: Arc<dyn Reviews>,
    permits: ReviewPermits,
    metrics: Metrics,
}

// === impl Reviewer ===

impl Reviewer {
    pub(crate) fn new(reviews: Arc<dyn Reviews>, metrics: Metrics) -> Self {
        Self { reviews, permits: ReviewPermits::new(), metrics }
    }

    pub(crate) async fn token(
        &self,
        queue: QueueKey,
        progress: &ReviewProgress,
        spec: impl Fn() -> TokenReviewSpec,
    ) -> Result<TokenReviewStatus, ReviewError> {
        self.persist(Kind::Token, self.attempts(queue, progress, || self.reviews.token_review(spec()))).await
    }

    pub(crate) async fn access(
        &self,
        queue: QueueKey,
        progress: &ReviewProgress,
        spec: SubjectAccessReviewSpec,
    ) -> Result<SubjectAccessReviewStatus, ReviewError> {
        let attempt = || self.reviews.subject_access_review(spec.clone());
        self.persist(Kind::Access, self.attempts(queue, progress, attempt)).await
    }

    async fn persist<T>(
        &self,
        kind: Kind,
        attempts: impl Future<Output = Result<T, ReviewError>>,
    ) -> Result<T, ReviewError> {
        let start = Instant::now();
        let outcome = timeout(REVIEW_DEADLINE, attempts).await.unwrap_or(Err(ReviewError::TimedOut));
        self.metrics.reviewed(kind, outcome.is_ok(), start.elapsed());
        if let Err(error) = &outcome {
            tracing::warn!(?kind, %error, "review failed");
        }
        outcome
    }

    async fn attempts<'a, T>(
        &'a self,
        queue: QueueKey,
        progress: &ReviewProgress,
        attempt: impl Fn() -> BoxFuture<'a, Result<T, ReviewError>>,
    ) -> Result<T, ReviewError> {
        let mut failures = 0;
        loop {
            let outcome = {
                // The permit is given back while waiting for the next attempt.
                let _permit = self.permits.take(&queue).await.ok_or(ReviewError::Lost)?;
                let _at_hub = progress.enter_hub();
                timeout(ATTEMPT_TIMEOUT, attempt()).await.unwrap_or(Err(ReviewError::TimedOut))
            };
            let Err(ReviewError::Hub { retry, .. }) = &outcome else { return outcome };
            match *retry {
                _ if failures + 1 >= MAX_ATTEMPTS => return outcome,
                Retry::Never => return outcome,
                Retry::Backoff => sleep(AGAIN.wait(failures)).await,
                Retry::After(wish) => sleep(wish.min(MAX_RETRY_AFTER)).await,
            }
            failures += 1;
        }
    }
}

impl std::fmt::Debug for Reviewer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reviewer").field("permits", &self.permits).finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests;
