//! Asks for responses that are read whole only when there is room for them: kube keeps a response
//! until its end, and does not count its responses in flight.

mod lines;

use std::convert::Infallible;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use http::response::Parts;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Either, Full};
use kube::client::Body;
use tokio::time::{Instant, timeout, timeout_at};
use tower::{BoxError, service_fn};

use self::lines::lines;
use crate::sender::{Sender, Streamed};

/// The wait for a large room is this many times that for a response: nothing is held meanwhile.
const TIMES: u32 = 10;

/// Room for responses, shared by all requests that use it.
pub trait Room: Clone + Send + Sync + 'static {
    /// Returns the room when it is dropped.
    type Held: Send + 'static;

    /// Waits for room for one response of [`Room::SMALL`] bytes.
    fn small(&self) -> impl Future<Output = Self::Held> + Send;

    /// Waits for room for one larger response.
    fn large(&self) -> impl Future<Output = Self::Held> + Send;

    /// Waits for room for one line of a watch, of [`Room::LONG`] bytes.
    fn line(&self) -> impl Future<Output = Self::Held> + Send;

    /// Longest response that needs only a small room, in bytes.
    const SMALL: usize;
    /// Longest line of a watch that needs no room, in bytes.
    const SHORT: usize;
    /// Longest line of a watch, in bytes.
    const LONG: usize;
}

/// A service whose requests wait for room.
#[derive(Clone)]
struct Roomed<R> {
    sender: Sender,
    room: R,
    within: Duration,
}

/// The body of a response, which holds its room.
type Kept = UnsyncBoxBody<Bytes, Infallible>;
type Answer = Result<Response<Either<Streamed, Kept>>, BoxError>;

const NO_ROOM: &str = "there was no room for so large an answer";

// === impl Sender ===

impl Sender {
    /// Sends requests only when there is `room` for their responses.
    ///
    /// All requests but watches wait for `room`. The response must be complete `within` that time,
    /// or, once it has a large room, `within` that time from then on. It holds its room until it is
    /// read. A GET whose response needs a large room when there is none gives up all its room,
    /// waits for a large one up to ten times as long, and is sent again.
    ///
    /// The response to a watch must begin `within` that time, and each line that has begun must end
    /// within it. A long line waits for room, and ends the watch.
    #[must_use]
    pub fn roomed<R: Room>(self, room: R, within: Duration) -> Self {
        let roomed = Roomed { sender: self, room, within };
        Self::new(service_fn(move |request: Request<Body>| {
            let this = roomed.clone();
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            async move { if is_watch { this.watch(request).await } else { this.whole(request).await } }
        }))
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
        // An error ends, unlike a watch.
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
        // A request that waits for others holds no room that others wait for.
        drop(held);
        self.large(again.ok_or(NO_ROOM)?).await
    }

    /// Sends the request with a large room from the start.
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

    /// Reads the body to its end. `None` if it needs a `large` room and there is none now.
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

/// A response that holds `held` until it is read.
fn kept<H: Send + 'static>(head: Parts, bytes: Bytes, held: H) -> Response<Either<Streamed, Kept>> {
    let kept = Full::new(bytes).map_frame(move |frame| {
        let _ = &held;
        frame
    });
    Response::from_parts(head, Either::Right(kept.boxed_unsync()))
}

#[cfg(test)]
mod tests;
