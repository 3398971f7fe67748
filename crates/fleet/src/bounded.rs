//! Limits the length of responses: kube reads each as a whole, however long it is.

use http_body_util::Limited;
use kube::Client;
use tower::service_fn;

use crate::failure::LONGEST_ERROR;
use crate::sender::Sender;

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
        Self::new(service_fn(move |request| {
            let sender = self.clone();
            async move {
                let response = sender.send(request).await?;
                let is_error = response.status().is_client_error() || response.status().is_server_error();
                let most = if is_error { most.min(LONGEST_ERROR) } else { most };
                Ok::<_, kube::Error>(response.map(|body| Limited::new(body, most)))
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{Request, Response};
    use k8s_openapi::api::core::v1::Namespace;
    use kube::api::Api;
    use kube::client::Body;

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
