//! The scripted API server of tests: a client whose requests a function answers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Bytes;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::{BoxError, service_fn};

/// A code and a document; none if no response ever comes.
pub type Answer = Option<(u16, Value)>;

/// A client of a server that answers by the head of a request and its JSON, which is null if there
/// is none.
pub fn client(answer: impl Fn(&Parts, Value) -> Answer + Send + Sync + 'static) -> Client {
    answering(move |request| {
        let (head, body) = request.into_parts();
        let answered = answer(&head, body);
        async move {
            let Some((code, body)) = answered else { return std::future::pending().await };
            document(code, &body)
        }
    })
}

/// The same, but an answer may take time, and need not be a document.
pub fn answering<F>(answer: impl Fn(Request<Value>) -> F + Send + Sync + 'static) -> Client
where
    F: Future<Output = Response<Body>> + Send + 'static,
{
    serving(move |request| {
        let answered = answer(request);
        async move { Ok::<_, Infallible>(answered.await) }
    })
}

/// The same, but an answer may also be a stream, or a broken connection.
pub fn serving<F, B, E>(answer: impl Fn(Request<Value>) -> F + Send + Sync + 'static) -> Client
where
    F: Future<Output = Result<Response<B>, E>> + Send + 'static,
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    E: Into<BoxError>,
{
    let answer = Arc::new(answer);
    let serve = move |request: Request<Body>| {
        let answer = Arc::clone(&answer);
        async move {
            let (head, body) = request.into_parts();
            let body = serde_json::from_slice(&body.collect().await?.to_bytes()).unwrap_or_default();
            answer(Request::from_parts(head, body)).await.map_err(Into::<BoxError>::into)
        }
    };
    Client::new(service_fn(serve), "default")
}

/// An answer with a document.
pub fn document(code: u16, document: &Value) -> Response<Body> {
    text(code, document.to_string())
}

/// An answer with any text.
pub fn text(code: u16, text: impl Into<Vec<u8>>) -> Response<Body> {
    let mut response = Response::new(Body::from(text.into()));
    *response.status_mut() = StatusCode::from_u16(code).expect("a status code");
    response
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
