//! What is read whole is asked for only when there is room for it: kube keeps an answer until its
//! end, and does not count its answers in flight.

mod lines;

use std::convert::Infallible;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::response::Parts;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Either, Full};
use kube::client::Body;
use tokio::time::{Instant, timeout, timeout_at};
use tower::{BoxError, Service};

use self::lines::lines;
use crate::sender::{Sender, Streamed};

/// For a large room is waited so many times as long as for an answer: nothing is held meanwhile.
const TIMES: u32 = 10;

/// Room for answers, shared by those that it is for.
pub trait Room: Clone + Send + Sync + 'static {
    /// Gives the room back when it is dropped.
    type Held: Send + 'static;

    /// Room for one answer of [`Room::SMALL`] bytes.
    fn small(&self) -> impl Future<Output = Self::Held> + Send;

    /// Room for one that is larger.
    fn large(&self) -> impl Future<Output = Self::Held> + Send;

    /// Room for one line of a watch, of [`Room::LONG`] bytes.
    fn line(&self) -> impl Future<Output = Self::Held> + Send;

    /// Bytes that need no more than a small room.
    const SMALL: usize;
    /// Bytes of a line of a watch that needs no room.
    const SHORT: usize;
    /// Bytes of the longest line.
    const LONG: usize;
}

/// What waits for room.
#[derive(Clone)]
struct Roomed<R> {
    sender: Sender,
    room: R,
    within: Duration,
}

/// An answer, which holds the room that it takes.
type Kept = UnsyncBoxBody<Bytes, Infallible>;
type Answer = Result<Response<Either<Streamed, Kept>>, BoxError>;

const NO_ROOM: &str = "there was no room for so large an answer";

// === impl Sender ===

impl Sender {
    /// The same.
    ///
    /// All but watches wait for `room`, have an answer `within` that time, and hold their room
    /// until that is read: a large one no longer than `within`, either. A GET for whose answer
    /// there is no large room lets go of all that it has, waits for one, up to ten times as long,
    /// and is asked again.
    ///
    /// Of a watch, the beginning of the answer comes `within` that time, and so does the rest of
    /// each line of which some has come; a long line waits for room, and ends the watch.
    #[must_use]
    pub fn roomed<R: Room>(self, room: R, within: Duration) -> Self {
        Self::new(Roomed { sender: self, room, within })
    }
}

impl<R: Room> Service<Request<Body>> for Roomed<R> {
    type Response = Response<Either<Streamed, Kept>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    /// Always: what is behind waits for its own room when a request is there.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        async move { if is_watch { this.watch(request).await } else { this.whole(request).await } }.boxed()
    }
}

// === impl Roomed ===

impl<R: Room> Roomed<R> {
    async fn watch(self, request: Request<Body>) -> Answer {
        let until = Instant::now() + self.within;
        let (head, body) = self.send(request, until).await?.into_parts();
        if head.status.is_success() {
            return Ok(Response::from_parts(head, Either::Left(lines(body, self.room, self.within))));
        }
        // An error has an end.
        let (bytes, held) = self.read(body, until, None).await?.ok_or(NO_ROOM)?;
        Ok(kept(head, bytes, held))
    }

    async fn whole(self, request: Request<Body>) -> Answer {
        let (parts, body) = request.into_parts();
        let again = (parts.method == Method::GET).then(|| Request::from_parts(parts.clone(), Body::empty()));
        let held = self.room.small().await;
        let until = Instant::now() + self.within;
        let (head, body) = self.send(Request::from_parts(parts, body), until).await?.into_parts();
        if let Some((bytes, more)) = self.read(body, until, None).await? {
            return Ok(kept(head, bytes, (held, more)));
        }
        // What waits for others holds nothing that others wait for.
        drop(held);
        self.large(again.ok_or(NO_ROOM)?).await
    }

    /// Asks with a large room from the beginning.
    async fn large(self, request: Request<Body>) -> Answer {
        let large = timeout(self.within * TIMES, self.room.large()).await.map_err(|_| NO_ROOM)?;
        let until = Instant::now() + self.within;
        let (head, body) = self.send(request, until).await?.into_parts();
        let (bytes, held) = self.read(body, until, Some(large)).await?.ok_or(NO_ROOM)?;
        Ok(kept(head, bytes, held))
    }

    async fn send(&self, request: Request<Body>, until: Instant) -> Result<Response<Streamed>, BoxError> {
        Ok(timeout_at(until, self.sender.send(request)).await.map_err(|_| self.late())??)
    }

    /// To its end; none: it needs a `large` room, and there is none now.
    async fn read(
        &self,
        mut body: Streamed,
        mut until: Instant,
        mut large: Option<R::Held>,
    ) -> Result<Option<(Bytes, Option<R::Held>)>, BoxError> {
        let mut bytes = BytesMut::new();
        while let Some(frame) = timeout_at(until, body.frame()).await.map_err(|_| self.late())? {
            let Ok(data) = frame?.into_data() else { continue };
            bytes.extend_from_slice(&data);
            if bytes.len() > R::SMALL && large.is_none() {
                large = self.room.large().now_or_never();
                if large.is_none() {
                    return Ok(None);
                }
                until = Instant::now() + self.within;
            }
        }
        Ok(Some((bytes.freeze(), large)))
    }

    fn late(&self) -> String {
        format!("no answer within {:?}", self.within)
    }
}

/// An answer, which holds `held` until it is read.
fn kept<H: Send + 'static>(head: Parts, bytes: Bytes, held: H) -> Response<Either<Streamed, Kept>> {
    let kept = Full::new(bytes).map_frame(move |frame| {
        let _ = &held;
        frame
    });
    Response::from_parts(head, Either::Right(kept.boxed_unsync()))
}

#[cfg(test)]
mod tests;
