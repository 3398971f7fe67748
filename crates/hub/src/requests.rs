//! Single JSON calls to an API server, for programs that make few calls.

use std::time::Duration;

use api::hub_status::HubStatus;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, StatusCode};
use kube::Client;
use kube::client::Body;
use net::words::Causes;
use serde_json::Value;
use tokio::time::Instant;

use super::calls::{head, read};
use super::failure::Incomplete;

/// Time limit for a complete response.
const WITHIN: Duration = Duration::from_secs(30);
/// Largest accepted response, in bytes: a page of a few hundred nodes.
const LARGEST: usize = 16 << 20;
const JSON: &str = "application/json";
/// Server-side apply. JSON is valid YAML.
const APPLY: &str = "application/apply-patch+yaml";
/// RFC 7396.
const MERGE_PATCH: &str = "application/merge-patch+json";

/// An API server. Cheap to clone.
#[derive(Clone)]
pub struct Requests(Client);

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The API server's own error response.
    #[error("it answered {code}: {message}")]
    Answer { code: u16, message: String },
    /// The connection failed or broke.
    #[error("no answer: {0}")]
    Unreachable(#[source] Causes),
    #[error("no complete answer within {WITHIN:?}")]
    Timeout,
    #[error("its answer is too large: more than {} MiB", LARGEST >> 20)]
    TooLarge,
    #[error("its answer cannot be read")]
    Unreadable,
}

// === impl Requests ===

impl Requests {
    pub fn new(client: Client) -> Self {
        Self(client)
    }

    pub async fn get(&self, path: &str) -> Result<Value, RequestError> {
        self.call(Method::GET, path, JSON, None).await
    }

    /// Creates an object in the collection at `path`.
    pub async fn create(&self, path: &str, object: &Value) -> Result<Value, RequestError> {
        self.call(Method::POST, path, JSON, Some(object)).await
    }

    /// Replaces the object at `path`.
    pub async fn replace(&self, path: &str, object: &Value) -> Result<Value, RequestError> {
        self.call(Method::PUT, path, JSON, Some(object)).await
    }

    /// Merges `patch` into the object at `path`.
    pub async fn merge(&self, path: &str, patch: &Value) -> Result<Value, RequestError> {
        self.call(Method::PATCH, path, MERGE_PATCH, Some(patch)).await
    }

    /// Makes the object at `path` what `object` says, whether or not it exists (server-side apply,
    /// forced). This is the only way to create an object with a permission that is limited to its
    /// name.
    pub async fn apply(&self, path: &str, manager: &str, object: &Value) -> Result<Value, RequestError> {
        let path = format!("{path}?fieldManager={manager}&force=true");
        self.call(Method::PATCH, &path, APPLY, Some(object)).await
    }

    /// The status code of a GET of `path`. Ignores the body.
    pub async fn probe(&self, path: &str) -> Result<StatusCode, RequestError> {
        self.send(Method::GET, path, JSON, None).await.map(|(code, _)| code)
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        content_type: &'static str,
        object: Option<&Value>,
    ) -> Result<Value, RequestError> {
        let (code, body) = self.send(method, path, content_type, object).await?;
        if !code.is_success() {
            let HubStatus { message, .. } = HubStatus::parse(code, &http::HeaderMap::new(), &body);
            return Err(RequestError::Answer { code: code.as_u16(), message });
        }
        serde_json::from_slice(&body).map_err(|_| RequestError::Unreadable)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &'static str,
        object: Option<&Value>,
    ) -> Result<(StatusCode, Bytes), RequestError> {
        let body = object.map_or_else(Body::empty, |object| Body::from(object.to_string().into_bytes()));
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().map_err(|_| RequestError::Unreadable)?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(JSON));
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        let deadline = Instant::now() + WITHIN;
        let response = head(&self.0, request, deadline).await?;
        let code = response.status();
        Ok((code, read(response, LARGEST, deadline, None).await?))
    }
}

// === impl RequestError ===

impl RequestError {
    /// Whether the API server itself responded with this code.
    pub fn is(&self, status: StatusCode) -> bool {
        matches!(self, Self::Answer { code, .. } if *code == status.as_u16())
    }
}

impl From<Incomplete> for RequestError {
    fn from(incomplete: Incomplete) -> Self {
        match incomplete {
            Incomplete::Unreachable(causes) => Self::Unreachable(causes),
            Incomplete::Timeout => Self::Timeout,
            Incomplete::TooLarge => Self::TooLarge,
        }
    }
}
