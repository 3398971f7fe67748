//! Limits the length of responses: kube reads each as a whole, however long it is.

use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body_util::Limited;
use kube::Client;
use kube::client::Body;
use tower::Service;

use crate::failure::LONGEST_ERROR;
use crate::sender::{Sender, Streamed};

/// A service that limits the bytes of responses.
#[derive(Clone)]
struct Bounded {
    sender: Sender,
    most: usize,
}

/// Wraps `client` like [`Sender::bounded`].
pub fn bounded(client: Client, most: usize) -> Client {
    let (namespace, end) = (client.default_namespace().to_owned(), *client.valid_until());
    Sender::from(client).bounded(most).client(&namespace).with_valid_until(end)
}

// === impl Sender ===

impl Sender {
    /// Breaks off a response of more than `most` bytes, and an error of more than 64 KiB. Streams
    /// count too: a long one must begin again.
    #[must_use]
    pub fn bounded(self, most: usize) -> Self {
        Self::new(Bounded { sender: self, most })
    }
}

impl Service<Request<Body>> for Bounded {
    type Response = Response<Limited<Streamed>>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Self::Response, kube::Error>>;

    /// Always ready: the inner service waits for its own room when it gets a request.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { sender, most } = self.clone();
        async move {
            let response = sender.send(request).await?;
            let is_error = response.status().is_client_error() || response.status().is_server_error();
            let most = if is_error { most.min(LONGEST_ERROR) } else { most };
            Ok(response.map(|body| Limited::new(body, most)))
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use k8s_openapi::api::core::v1::Namespace;
    use kube::api::Api;
    use tower::service_fn;

    use super::*;

    #[tokio::test]
    async fn an_answer_that_is_too_long_breaks_off() {
        const MOST: usize = 1000;
        let answering = |padding: usize| {
            let namespace = serde_json::json!({"metadata": {"name": "n", "annotations": {"a": "x".repeat(padding)}}});
            let answer = move |_: Request<Body>| {
                let body = Body::from(Bytes::from(namespace.to_string()).to_vec());
                async move { Ok::<_, kube::Error>(Response::new(body)) }
            };
            Api::<Namespace>::all(bounded(Client::new(service_fn(answer), "default"), MOST))
        };
        assert_eq!(answering(10).get("n").await.unwrap().metadata.name.as_deref(), Some("n"));
        let failure = crate::Failure::from(answering(MOST).get("n").await.unwrap_err());
        assert!(failure.to_string().contains("length limit exceeded"), "{failure}");
    }
}
