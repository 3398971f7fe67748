//! Reviews by the hub's API server, through a kube client.

use std::error::Error as _;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus};
use k8s_openapi::api::authorization::v1::{SubjectAccessReview, SubjectAccessReviewSpec, SubjectAccessReviewStatus};
use kube::api::PostParams;
use kube::core::Status;
use kube::{Api, Client};
use telemetry::causes::causes;

use super::{Retry, ReviewError, Reviews};

/// Clients of the hub; they may be clones of one.
#[derive(Clone)]
pub struct Hub {
    /// For TokenReviews and the authentication ConfigMap (`--authentication-kubeconfig`).
    pub authentication: Client,
    /// For SubjectAccessReviews (`--authorization-kubeconfig`).
    pub authorization: Client,
}

/// Posts each review to the hub. Calls must run on the runtime that drives the client.
pub(crate) struct HubReviews {
    tokens: Api<TokenReview>,
    access: Api<SubjectAccessReview>,
}

// === impl Hub ===

impl From<Client> for Hub {
    fn from(client: Client) -> Self {
        Self { authentication: client.clone(), authorization: client }
    }
}

// === impl HubReviews ===

impl HubReviews {
    pub(crate) fn new(hub: impl Into<Hub>) -> Self {
        let hub = hub.into();
        Self { tokens: Api::all(hub.authentication), access: Api::all(hub.authorization) }
    }
}

impl Reviews for HubReviews {
    fn token_review(&self, spec: TokenReviewSpec) -> BoxFuture<'_, Result<TokenReviewStatus, ReviewError>> {
        Box::pin(async move {
            let review = TokenReview { spec, ..TokenReview::default() };
            let answer = self.tokens.create(&PostParams::default(), &review).await.map_err(|error| failure(&error))?;
            answer.status.ok_or_else(no_status)
        })
    }

    fn subject_access_review(
        &self,
        spec: SubjectAccessReviewSpec,
    ) -> BoxFuture<'_, Result<SubjectAccessReviewStatus, ReviewError>> {
        Box::pin(async move {
            let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
            let answer = self.access.create(&PostParams::default(), &review).await.map_err(|error| failure(&error))?;
            answer.status.ok_or_else(no_status)
        })
    }
}

fn no_status() -> ReviewError {
    ReviewError::Hub { message: Arc::from("the answer has no status"), retry: Retry::Never }
}

/// Splits an error into what the caller may read and what goes to the log only: texts of the hub
/// and of the transport can name addresses and internals.
fn failure(error: &kube::Error) -> ReviewError {
    match error {
        kube::Error::Api(status) => {
            let message = format!("the hub answered {} {}", status.code, status.reason);
            ReviewError::Hub { message: Arc::from(message.trim_end()), retry: retry_status(status) }
        }
        kube::Error::Service(_) | kube::Error::HyperError(_) | kube::Error::ReadEvents(_) => {
            let retry = if is_lost_connection(error) { Retry::Backoff } else { Retry::Never };
            tracing::warn!(error = causes(error), "no answer from the hub to a review");
            ReviewError::Hub { message: Arc::from("no answer from the hub"), retry }
        }
        _ => {
            tracing::debug!(error = causes(error), "the answer of the hub is not understood");
            ReviewError::Hub { message: Arc::from("the answer of the hub is not understood"), retry: Retry::Never }
        }
    }
}

/// `apierrors.IsInternalError`, `IsTimeout`, `IsTooManyRequests`, `SuggestsClientDelay`.
fn retry_status(status: &Status) -> Retry {
    let after = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    match (after, status.code) {
        (1.., _) => Retry::After(Duration::from_secs(after.into())),
        (0, 429 | 500 | 504) => Retry::Backoff,
        _ => Retry::Never,
    }
}

/// The connection ended under the call (`utilnet.IsConnectionReset`, `IsHTTP2ConnectionLost`);
/// hyper has no IO error for an idle connection that the hub closed just then.
fn is_lost_connection(error: &kube::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<std::io::Error>()
            && matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof)
        {
            return true;
        }
        if error
            .downcast_ref::<hyper::Error>()
            .is_some_and(|error| error.is_incomplete_message() || error.is_canceled())
        {
            return true;
        }
        cause = error.source();
    }
    false
}
