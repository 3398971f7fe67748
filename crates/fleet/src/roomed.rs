//! A client that asks for what it reads whole only when there is room for it: kube keeps an answer
//! until its end, and nobody else knows how many there are at a time.

use std::convert::Infallible;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Either, Full};
use kube::Client;
use kube::client::Body;
use tokio::time::{Instant, timeout, timeout_at};
use tower::{BoxError, Service};

/// Room for answers, shared by those that it is for.
pub trait Room: Clone + Send + Sync + 'static {
    /// Gives the room back when it is dropped.
    type Held: Send + 'static;

    /// Room for one answer of [`Room::SMALL`] bytes.
    fn small(&self) -> impl Future<Output = Self::Held> + Send;

    /// Room for the rest of one that is larger.
    fn large(&self) -> impl Future<Output = Self::Held> + Send;

    /// Bytes that need no more than a small room.
    const SMALL: usize;
}

/// The client, behind what waits for room.
#[derive(Clone)]
struct Roomed<R> {
    client: Client,
    room: R,
    within: Duration,
}

/// An answer, which holds the room that it takes.
type Kept = UnsyncBoxBody<Bytes, Infallible>;

/// The same client; all but watches waits for `room`, has an answer `within` that time, and holds
/// its room until that is read. Waiting for room does not count, but for a large one no longer than
/// `within` again.
pub fn roomed<R: Room>(client: Client, room: R, within: Duration) -> Client {
    let (namespace, end) = (client.default_namespace().to_owned(), *client.valid_until());
    Client::new(Roomed { client, room, within }, namespace).with_valid_until(end)
}

impl<R: Room> Service<Request<Body>> for Roomed<R> {
    type Response = Response<Either<Body, Kept>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    /// Always: the client waits for its own room when a request is there.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        async move {
            if is_watch {
                return Ok(this.client.send(request).await?.map(Either::Left));
            }
            this.whole(request).await
        }
        .boxed()
    }
}

// === impl Roomed ===

impl<R: Room> Roomed<R> {
    async fn whole(self, request: Request<Body>) -> Result<Response<Either<Body, Kept>>, BoxError> {
        let late = |_| format!("no answer within {:?}", self.within);
        let held = self.room.small().await;
        let mut until = Instant::now() + self.within;
        let (head, mut body) = timeout_at(until, self.client.send(request)).await.map_err(late)??.into_parts();
        let (mut bytes, mut more) = (BytesMut::new(), None);
        while let Some(frame) = timeout_at(until, body.frame()).await.map_err(late)? {
            let Ok(data) = frame?.into_data() else { continue };
            bytes.extend_from_slice(&data);
            if bytes.len() > R::SMALL && more.is_none() {
                let asked = Instant::now();
                let none = |_| "there was no room for so large an answer";
                more = Some(timeout(self.within, self.room.large()).await.map_err(none)?);
                until += asked.elapsed();
            }
        }
        let held = (held, more);
        let kept = Full::new(bytes.freeze()).map_frame(move |frame| {
            let _ = &held;
            frame
        });
        Ok(Response::from_parts(head, Either::Right(kept.boxed_unsync())))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use k8s_openapi::api::core::v1::Namespace;
    use kube::api::{Api, ListParams};
    use tokio::sync::{OwnedSemaphorePermit, Semaphore};
    use tower::service_fn;

    use super::*;

    const WITHIN: Duration = Duration::from_secs(30);

    #[derive(Clone)]
    struct Two(Arc<Semaphore>, Arc<Semaphore>);

    impl Room for Two {
        type Held = Option<OwnedSemaphorePermit>;
        const SMALL: usize = 1000;

        async fn small(&self) -> Self::Held {
            Arc::clone(&self.0).acquire_owned().await.ok()
        }

        async fn large(&self) -> Self::Held {
            Arc::clone(&self.1).acquire_owned().await.ok()
        }
    }

    /// A server that takes a second for each answer, and counts how many it makes at a time.
    fn server(padding: usize, most: &Arc<AtomicUsize>) -> Client {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::clone(most));
        let answer = move |_: Request<Body>| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_secs(1)).await;
                now.fetch_sub(1, Ordering::Relaxed);
                let metadata = serde_json::json!({"resourceVersion": "1", "padding": "x".repeat(padding)});
                let list = serde_json::json!({"kind": "NamespaceList", "apiVersion": "v1", "metadata": metadata,
                    "items": []});
                Ok::<_, kube::Error>(Response::new(Body::from(list.to_string().into_bytes())))
            }
        };
        Client::new(service_fn(answer), "default")
    }

    fn two() -> Two {
        Two(Arc::new(Semaphore::new(2)), Arc::new(Semaphore::new(1)))
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_lists_are_made_at_a_time() {
        let most = Arc::new(AtomicUsize::new(0));
        let api = Api::<Namespace>::all(roomed(server(10, &most), two(), WITHIN));
        let lists = (0..10).map(|_| {
            let api = api.clone();
            tokio::spawn(async move { api.list(&ListParams::default()).await })
        });
        for list in lists.collect::<Vec<_>>() {
            list.await.unwrap().unwrap();
        }
        assert_eq!(most.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_large_waits_for_room_of_its_own_and_what_is_small_does_not() {
        let (room, most) = (two(), Arc::default());
        let large = room.large().await;
        let list = |padding| {
            let api = Api::<Namespace>::all(roomed(server(padding, &most), room.clone(), WITHIN));
            async move { api.list(&ListParams::default()).await }
        };
        list(10).await.unwrap();
        let failure = crate::Failure::from(list(2000).await.unwrap_err());
        assert!(failure.to_string().contains("no room"), "{failure}");
        drop(large);
        list(2000).await.unwrap();
        assert_eq!(room.0.available_permits() + room.1.available_permits(), 3, "it is given back");
    }

    #[tokio::test(start_paused = true)]
    async fn who_never_answers_does_not_keep_its_room() {
        let never = |_: Request<Body>| std::future::pending::<Result<Response<Body>, kube::Error>>();
        let room = two();
        let api = Api::<Namespace>::all(roomed(Client::new(service_fn(never), "default"), room.clone(), WITHIN));
        let failure = crate::Failure::from(api.list(&ListParams::default()).await.unwrap_err());
        assert!(failure.to_string().contains("no answer within 30s"), "{failure}");
        assert_eq!(room.0.available_permits(), 2);
    }
}
