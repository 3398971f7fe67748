//! Sends reviews to the hub's API server with a kube client.

use std::error::Error;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus};
use k8s_openapi::api::authorization::v1::{SubjectAccessReview, SubjectAccessReviewSpec, SubjectAccessReviewStatus};
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use net::words::causes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Retry, ReviewError, Reviews};

/// Longest response to a review, in bytes: the head from a front proxy holds no more about a user
/// either. kube reads responses of any length, and a hundred are in flight at a time.
const LARGEST: usize = 1 << 20;
const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// Clients of the hub, which may be clones of one.
#[derive(Clone)]
pub struct HubClients {
    /// For TokenReviews and the authentication ConfigMap (`--authentication-kubeconfig`).
    pub authentication: Client,
    /// For SubjectAccessReviews (`--authorization-kubeconfig`).
    pub authorization: Client,
}

/// Posts each review to the hub. Calls must run on the runtime that drives the client.
pub(crate) struct HubReviews(HubClients);

// === impl HubClients ===

impl From<Client> for HubClients {
    fn from(client: Client) -> Self {
        Self { authentication: client.clone(), authorization: client }
    }
}

// === impl HubReviews ===

impl HubReviews {
    pub(crate) fn new(hub: impl Into<HubClients>) -> Self {
        Self(hub.into())
    }
}

impl Reviews for HubReviews {
    fn token_review(&self, spec: TokenReviewSpec) -> BoxFuture<'_, Result<TokenReviewStatus, ReviewError>> {
        Box::pin(async move {
            let review = TokenReview { spec, ..TokenReview::default() };
            post(&self.0.authentication, TOKEN_REVIEWS, &review).await?.status.ok_or_else(no_status)
        })
    }

    fn subject_access_review(
        &self,
        spec: SubjectAccessReviewSpec,
    ) -> BoxFuture<'_, Result<SubjectAccessReviewStatus, ReviewError>> {
        Box::pin(async move {
            let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
            post(&self.0.authorization, ACCESS_REVIEWS, &review).await?.status.ok_or_else(no_status)
        })
    }
}

async fn post<R: Serialize + DeserializeOwned>(client: &Client, path: &str, review: &R) -> Result<R, ReviewError> {
    let review = serde_json::to_vec(review).map_err(|error| not_understood(&error))?;
    let mut request = Request::post(path).body(Body::from(review)).map_err(|error| not_understood(&error))?;
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let response = client.send(request).await.map_err(|error| no_answer(&error))?;
    let code = response.status();
    let body = Limited::new(response.into_body(), LARGEST).collect().await;
    let body = match body {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Err(not_understood(&*error)),
        Err(error) => return Err(no_answer(&*error)),
    };
    read(code, &body)
}

/// Parses a hub's response to a review.
pub(crate) fn read<R: DeserializeOwned>(code: StatusCode, body: &[u8]) -> Result<R, ReviewError> {
    if code.is_client_error() || code.is_server_error() {
        return Err(refused(code, serde_json::from_slice(body).ok()));
    }
    serde_json::from_slice(body).map_err(|error| not_understood(&error))
}

pub(crate) fn no_status() -> ReviewError {
    ReviewError::Hub { message: Arc::from("the answer has no status"), retry: Retry::Never }
}

/// The text that the caller may read. Texts of the hub and of the transport can contain addresses
/// and internals, and only go to the log. A response without a Status came from a proxy before the
/// hub.
fn refused(code: StatusCode, status: Option<Status>) -> ReviewError {
    let status = status
        .unwrap_or_else(|| Status::failure("", code.canonical_reason().unwrap_or_default()).with_code(code.as_u16()));
    let message = format!("the hub answered {} {}", status.code, status.reason);
    ReviewError::Hub { message: Arc::from(message.trim_end()), retry: retry_status(&status) }
}

fn no_answer(error: &(dyn Error + 'static)) -> ReviewError {
    let retry = if is_lost_connection(error) { Retry::Backoff } else { Retry::Never };
    tracing::warn!(error = causes(error), "no answer from the hub to a review");
    ReviewError::Hub { message: Arc::from("no answer from the hub"), retry }
}

fn not_understood(error: &(dyn Error + 'static)) -> ReviewError {
    tracing::debug!(error = causes(error), "the answer of the hub is not understood");
    ReviewError::Hub { message: Arc::from("the answer of the hub is not understood"), retry: Retry::Never }
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

/// Whether the connection ended during the call (`utilnet.IsConnectionReset`,
/// `IsHTTP2ConnectionLost`). hyper has no IO error for an idle connection that the hub has just
/// closed.
fn is_lost_connection(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
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
