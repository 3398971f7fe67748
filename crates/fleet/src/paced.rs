//! Limits the rate of requests, which would otherwise be as fast as the server answers.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};
use tower::service_fn;

use crate::sender::Sender;

// === impl Sender ===

impl Sender {
    /// Leaves at least `every` between the starts of two requests.
    ///
    /// For watches of untrusted servers: kube's watcher backs off after errors, but starts again at
    /// once after a watch that ended cleanly, or after a page that promises another.
    #[must_use]
    pub fn paced(self, every: Duration) -> Self {
        let next = Arc::new(Mutex::new(Instant::now()));
        Self::new(service_fn(move |request| {
            let (sender, next) = (self.clone(), Arc::clone(&next));
            async move {
                let mut next = next.lock().await;
                sleep_until(*next).await;
                *next = Instant::now() + every;
                drop(next);
                sender.send(request).await
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::StreamExt as _;
    use http::{Request, Response};
    use k8s_openapi::api::core::v1::Namespace;
    use kube::api::Api;
    use kube::client::Body;
    use kube::runtime::watcher::{Config, watcher};
    use parking_lot::Mutex;

    use super::*;

    /// A server that ends each watch at once, and cleanly.
    #[tokio::test(start_paused = true)]
    async fn a_watch_that_always_ends_is_not_asked_at_the_servers_speed() {
        const SECONDS: usize = 20;
        let asked = Arc::<Mutex<usize>>::default();
        let counted = Arc::clone(&asked);
        let answer = move |request: Request<Body>| {
            *counted.lock() += 1;
            assert!(*counted.lock() < 1000, "at the server's speed");
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            let list = r#"{"kind":"NamespaceList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}"#;
            let body = if is_watch { String::new() } else { list.to_owned() };
            async move { Ok::<_, kube::Error>(Response::new(Body::from(body.into_bytes()))) }
        };
        let client = Sender::new(service_fn(answer)).paced(Duration::from_secs(1)).client("default");
        let mut events = pin!(watcher(Api::<Namespace>::all(client), Config::default()));
        let watching = async { while let Some(Ok(_)) = events.next().await {} };
        tokio::time::timeout(Duration::from_secs(SECONDS as u64), watching).await.unwrap_err();
        assert!((SECONDS / 2..=SECONDS + 1).contains(&*asked.lock()), "{} requests", asked.lock());
    }
}
