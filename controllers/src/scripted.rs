//! The scripted API server of tests: a client whose requests a function answers.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

/// A code and a document; none if no response ever comes.
pub type Answer = Option<(u16, Value)>;

/// A client of a server that answers by the head of a request and its JSON, which is null if there
/// is none.
pub fn client(answer: impl Fn(&Parts, Value) -> Answer + Send + Sync + 'static) -> Client {
    let answer = Arc::new(answer);
    let serve = move |request: Request<Body>| {
        let answer = Arc::clone(&answer);
        async move {
            let (head, body) = request.into_parts();
            let body = serde_json::from_slice(&body.collect().await?.to_bytes()).unwrap_or_default();
            let Some((code, body)) = answer(&head, body) else { return std::future::pending().await };
            let body = Body::from(body.to_string().into_bytes());
            Ok::<_, tower::BoxError>(Response::builder().status(code).body(body)?)
        }
    };
    Client::new(service_fn(serve), "default")
}

/// A client of the same server, whose answers take so much time each.
pub fn delayed(inner: Client, time: Duration) -> Client {
    let serve = move |request: Request<Body>| {
        let inner = inner.clone();
        async move {
            tokio::time::sleep(time).await;
            inner.send(request).await
        }
    };
    Client::new(service_fn(serve), "default")
}

/// A failure.
pub fn status(code: u16, reason: &str, message: &str) -> (u16, Value) {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": message});
    (code, status)
}
