//! Single JSON calls to an API server, for programs that make few calls.

use std::time::Duration;

use api::hub_status::HubStatus;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::Value;

use super::calls::{Deadline, head, read, refusal};
use super::failure::Cause;

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

// === impl Requests ===

impl Requests {
    pub fn new(client: Client) -> Self {
        Self(client)
    }

    pub async fn get(&self, path: &str) -> Result<Value, Cause> {
        self.call(Method::GET, path, JSON, None).await
    }

    /// Creates an object in the collection at `path`.
    pub async fn create(&self, path: &str, object: &Value) -> Result<Value, Cause> {
        self.call(Method::POST, path, JSON, Some(object)).await
    }

    /// Replaces the object at `path`.
    pub async fn replace(&self, path: &str, object: &Value) -> Result<Value, Cause> {
        self.call(Method::PUT, path, JSON, Some(object)).await
    }

    /// Merges `patch` into the object at `path`.
    pub async fn merge(&self, path: &str, patch: &Value) -> Result<Value, Cause> {
        self.call(Method::PATCH, path, MERGE_PATCH, Some(patch)).await
    }

    /// Makes the object at `path` what `object` says, whether or not it exists (server-side apply,
    /// forced). This is the only way to create an object with a permission that is limited to its
    /// name.
    pub async fn apply(&self, path: &str, manager: &str, object: &Value) -> Result<Value, Cause> {
        let path = format!("{path}?fieldManager={manager}&force=true");
        self.call(Method::PATCH, &path, APPLY, Some(object)).await
    }

    /// The status code of a GET of `path`. Ignores the body.
    pub async fn probe(&self, path: &str) -> Result<StatusCode, Cause> {
        let deadline = Deadline::after(WITHIN);
        let response = head(&self.0, request(Method::GET, path, JSON, None)?, deadline).await?;
        let code = response.status();
        read(response, LARGEST, deadline, None).await?;
        Ok(code)
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        content_type: &'static str,
        object: Option<&Value>,
    ) -> Result<Value, Cause> {
        let deadline = Deadline::after(WITHIN);
        let response = head(&self.0, request(method, path, content_type, object)?, deadline).await?;
        let code = response.status();
        if !code.is_success() {
            // The head's code: a proxy before the API server may number its errors in another way.
            let status = HubStatus { code: code.as_u16(), ..refusal(response, deadline).await };
            return Err(Cause::Status(status));
        }
        let body = read(response, LARGEST, deadline, None).await?;
        serde_json::from_slice(&body).map_err(|_| Cause::Unreadable)
    }
}

fn request(
    method: Method,
    path: &str,
    content_type: &'static str,
    object: Option<&Value>,
) -> Result<Request<Body>, Cause> {
    let body = object.map_or_else(Body::empty, |object| Body::from(object.to_string().into_bytes()));
    let mut request = Request::new(body);
    *request.method_mut() = method;
    // A path may have the `continue` token of an earlier answer, with any character.
    *request.uri_mut() = path.parse().map_err(|_| Cause::Unreadable)?;
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(JSON));
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    Ok(request)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::Response;
    use tower::service_fn;

    use super::*;

    /// An API server that answers everything so.
    fn answering(code: u16, body: String) -> Requests {
        let answer = move |_: Request<Body>| {
            let body = Body::from(body.clone().into_bytes());
            async move { Ok::<_, Infallible>(Response::builder().status(code).body(body).unwrap()) }
        };
        Requests::new(Client::new(service_fn(answer), "default"))
    }

    #[tokio::test]
    async fn a_refusal_keeps_its_code_whatever_its_body_is() {
        for (body, text) in [
            (r#"{"code": 16, "message": "who?"}"#.to_owned(), "the API server answered 401: who?"),
            ("<html>".to_owned(), "the API server answered 401: "),
            ("x".repeat(LARGEST + 1), "the API server answered 401: "),
        ] {
            let error = answering(401, body).get("/version").await.unwrap_err();
            assert!(error.is(StatusCode::UNAUTHORIZED), "{error}");
            assert_eq!(error.to_string(), text);
        }
    }

    #[tokio::test]
    async fn too_large_is_not_unreadable() {
        let error = answering(200, "x".repeat(LARGEST + 1)).get("/version").await.unwrap_err();
        assert_eq!(error.to_string(), "the answer is too large: more than 16777216 bytes");
        let error = answering(200, "<html>".to_owned()).get("/version").await.unwrap_err();
        assert_eq!(error.to_string(), "the answer cannot be read");
    }
}
