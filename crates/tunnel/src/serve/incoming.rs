//! A stream that a peer requests.

use std::future::poll_fn;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::request;
use http::{HeaderMap, Response, StatusCode};
use net::queue::Queue;

use crate::link::{CLUSTER, broken};
use crate::stream::{Open, take};
use crate::{ClusterName, Destination, LinkError, Refusal, Stream, Timing};

/// A `CONNECT` to be answered. Dropping it unanswered refuses it with `RST_STREAM(INTERNAL_ERROR)`.
#[derive(Debug)]
pub struct Incoming {
    /// The requested destination.
    pub destination: Destination,
    /// The `Tunnel-Cluster` header, if there is one.
    pub cluster: Option<ClusterName>,
    /// All headers, for callers that need more.
    pub headers: HeaderMap,
    answer: Answer,
}

/// The parts from which a stream is made.
#[derive(Debug)]
struct Parts {
    body: RecvStream,
    /// Bytes that the peer sent without waiting for an answer.
    early: Queue,
    open: Open,
}

/// What is needed to answer.
#[derive(Debug)]
struct Answer {
    respond: SendResponse<Bytes>,
    /// Taken when it is answered.
    parts: Option<Parts>,
}

// === impl Incoming ===

impl Incoming {
    /// The error is the message of a 400.
    pub(super) fn parse(head: request::Parts) -> Result<(Destination, Option<ClusterName>, HeaderMap), String> {
        let authority = head.uri.authority().map_or("", |authority| authority.as_str());
        let destination = Destination::parse(authority).map_err(|error| error.to_string())?;
        let mut clusters = head.headers.get_all(CLUSTER).iter();
        let cluster = clusters.next();
        if clusters.next().is_some() {
            return Err(format!("more than one {CLUSTER} header"));
        }
        let cluster = match cluster {
            Some(name) => {
                let name = name.to_str().map_err(|_| format!("the {CLUSTER} header is not text"))?;
                Some(ClusterName::parse(name).map_err(|error| error.to_string())?)
            }
            None => None,
        };
        Ok((destination, cluster, head.headers))
    }

    pub(super) fn new(
        (destination, cluster, headers): (Destination, Option<ClusterName>, HeaderMap),
        respond: SendResponse<Bytes>,
        body: RecvStream,
        open: Open,
    ) -> Self {
        let parts = Some(Parts { body, early: Queue::default(), open });
        Self { destination, cluster, headers, answer: Answer { respond, parts } }
    }

    /// The stream's identifier on its link.
    pub fn id(&self) -> u32 {
        self.answer.respond.stream_id().as_u32()
    }

    /// Answers 200. The error is for the log: the peer is gone.
    pub fn accept(self) -> Result<Stream, LinkError> {
        self.accept_timed(Timing::default())
    }

    /// Like [`Incoming::accept`], and reports how long the hops took.
    pub fn accept_timed(mut self, timing: Timing) -> Result<Stream, LinkError> {
        let mut response = Response::new(());
        timing.write(response.headers_mut());
        let send = self.answer.respond.send_response(response, false).map_err(broken)?;
        let Parts { body, early, open } = self.answer.parts.take().expect("answered once: this consumes it");
        Ok(Stream::new(send, body, early, open))
    }

    /// Answers with the refusal's status and headers.
    pub fn refuse(mut self, refusal: &Refusal) {
        let mut response = status(refusal.reason.status());
        refusal.write(response.headers_mut());
        self.answer.parts = None;
        // An error: the peer is gone.
        let _ = self.answer.respond.send_response(response, true);
    }

    /// Completes when the peer has given the stream up (`RST_STREAM`, or the connection ended):
    /// abort the dial. Await it next to the dial, because it also takes incoming data off HTTP/2,
    /// where short frames take much room.
    pub async fn cancelled(&mut self) {
        poll_fn(|cx| self.poll_cancelled(cx)).await;
    }

    pub(super) fn poll_cancelled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(Parts { body, early, .. }) = &mut self.answer.parts {
            take(body, early, cx);
        }
        self.answer.respond.poll_reset(cx).map(|_| ())
    }
}

pub(super) fn status(status: StatusCode) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    response
}

// === impl Answer ===

impl Drop for Answer {
    fn drop(&mut self) {
        if self.parts.is_some() {
            self.respond.send_reset(h2::Reason::INTERNAL_ERROR);
        }
    }
}
