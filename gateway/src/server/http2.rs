//! Serves HTTP/2 to hubs and clients: one connection, whose requests are handled concurrently.
//!
//! Uses the `h2` crate itself. hyper's server returns flow-control credit as soon as a body is
//! polled, so unread uploads could not be taken out of h2 without opening their windows
//! ([`crate::unread`]). It also has no setting for h2's budget of short frames or its memory of
//! reset streams, and it ends the connection at a CONNECT with a length.

mod liveness;
mod responding;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::server::{Handshake, SendResponse};
use h2::{Reason, RecvStream};
use http::Request;
use net::gather::{Gathered, gather};
use net::linger::{self, Linger};
use net::observed::Observed;
use tokio::task::coop::unconstrained;
use tokio::time::{Sleep, sleep};

use self::liveness::{Liveness, ReceivedBytes};
use self::responding::Responding;
use super::limits::{self, Limits};
use super::{Ended, Stream};
use crate::connection::Connection;
use crate::handler::handle;
use crate::inbound::{Inbound, Marks};
use crate::request_body::RequestBody;
use crate::unread::{Collecting, Collector};

/// Until a connection that is refused is dropped: for its goodbye, and for the client to close.
const GOODBYE: Duration = linger::PATIENCE;

type Io = Gathered<Observed<Inbound<Linger<Stream>>, ReceivedBytes>>;

/// Serves until the client or the gateway closes the connection. Not an `async fn`, as in
/// [`http1`](super::http1).
pub fn serve(stream: Stream, connection: Arc<Connection>) -> impl Future<Output = Result<(), Ended>> {
    let (marks, received, collector) = (Marks::default(), ReceivedBytes::default(), Arc::<Collector>::default());
    let many_users = connection.gateway().authenticator.recognize(connection.peer());
    let inbound = Inbound::of_client(Linger::new(stream), marks.clone())
        .ending_with_goodbye()
        .attended_by(Arc::clone(&collector))
        .held_for(connection.held());
    let inbound = if many_users { inbound } else { inbound.owed(Limits::LOCAL_RESETS) };
    let (io, outlet) = gather(Observed::new(inbound, received.clone()));
    let requests =
        Requests { connection: Arc::clone(&connection), many_users, marks, collector: Arc::clone(&collector) };
    let handshake = limits::http2(connection.gateway().settings.max_streams, many_users).handshake(io);
    let serving = Serving {
        phase: Phase::Handshake(Box::new(handshake)),
        leaving: false,
        goodbye: None,
        received: received.clone(),
        requests,
    };
    let serving = Collecting::new(outlet.drive(serving).reading_at_most(Limits::TURN), collector);
    let serving = Box::pin(serving);
    async move {
        let driven = super::drive(serving, |serving| serving.get_mut().driver().connection().leave(), &connection);
        tokio::select! {
            // No order is needed, but without this each poll would choose one by a random number.
            biased;
            end = driven => end,
            // Before the preface, there is no PING to check liveness.
            () = silence(&received) => Err(Ended::NoPreface(Limits::PREFACE)),
        }
    }
}

/// Completes if the client has not sent its preface in time. The connection may have used up the
/// task's budget before: TLS records without content are no preface.
async fn silence(received: &ReceivedBytes) {
    unconstrained(sleep(Limits::PREFACE)).await;
    if received.has_preface() {
        std::future::pending::<()>().await;
    }
}

/// The connection, until its end.
struct Serving {
    phase: Phase,
    /// Whether it was asked to end during the handshake, when no GOAWAY can be sent yet.
    leaving: bool,
    /// The connection has been asked to end: the time until which it may last.
    goodbye: Option<Pin<Box<Sleep>>>,
    received: ReceivedBytes,
    requests: Requests,
}

enum Phase {
    Handshake(Box<Handshake<Io, Bytes>>),
    Open(Box<(h2::server::Connection<Io, Bytes>, Liveness)>),
}

/// Starts a task for the request of each accepted stream.
struct Requests {
    connection: Arc<Connection>,
    /// The connection began as a front proxy's.
    many_users: bool,
    /// Marks found in heads.
    marks: Marks,
    collector: Arc<Collector>,
}

// === impl Serving ===

impl Serving {
    /// Takes no new requests and finishes those in flight: GOAWAY (RFC 9113 §6.8).
    fn leave(&mut self) {
        match &mut self.phase {
            Phase::Handshake(_) => self.leaving = true,
            Phase::Open(open) => open.0.graceful_shutdown(),
        }
    }
}

impl Future for Serving {
    type Output = Result<(), Ended>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        let this = &mut *self;
        loop {
            match &mut this.phase {
                Phase::Handshake(handshake) => {
                    let Poll::Ready(opened) = Pin::new(&mut **handshake).poll(cx) else {
                        return this.requests.refused();
                    };
                    let mut connection = opened.map_err(|error| this.requests.ended_by(error))?;
                    if this.leaving {
                        connection.graceful_shutdown();
                    }
                    let pings = connection.ping_pong().expect("taken once");
                    let liveness = Liveness::new(pings, this.received.clone());
                    this.phase = Phase::Open(Box::new((connection, liveness)));
                }
                Phase::Open(open) => {
                    let (connection, liveness) = &mut **open;
                    while let Poll::Ready(accepted) = connection.poll_accept(cx) {
                        match accepted.transpose().map_err(|error| this.requests.ended_by(error))? {
                            Some((request, respond)) => this.requests.answer(request, respond),
                            None => return Poll::Ready(this.requests.marks.end().map_or(Ok(()), refused)),
                        }
                    }
                    if this.requests.marks.end().is_some() {
                        if let Some(until) = &mut this.goodbye {
                            ready!(until.as_mut().poll(cx));
                            return this.requests.refused();
                        }
                        connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
                        this.goodbye = Some(Box::pin(sleep(GOODBYE)));
                        continue;
                    }
                    if this.requests.take_late_recognition() {
                        this.requests.connection.close_soon();
                    }
                    if this.requests.pin_too_much() {
                        return Poll::Ready(Err(Ended::PinnedHeads));
                    }
                    ready!(liveness.poll(cx));
                    return Poll::Ready(Err(Ended::Silent(Limits::PONG_WITHIN)));
                }
            }
        }
    }
}

fn refused(why: &'static str) -> Result<(), Ended> {
    Err(Ended::Refused(why))
}

// === impl Requests ===

impl Requests {
    /// Why the connection ended. A refused client may close it before the GOAWAY is written.
    fn ended_by(&self, error: h2::Error) -> Ended {
        self.marks.end().map_or(Ended::Http2(error), Ended::Refused)
    }

    /// Whether the connection is refused already, and why.
    fn refused(&self) -> Poll<Result<(), Ended>> {
        self.marks.end().map_or(Poll::Pending, |why| Poll::Ready(refused(why)))
    }

    fn pin_too_much(&self) -> bool {
        self.marks.pinned() > Limits::PINNED && !self.connection.peer().is_front_proxy()
    }

    /// Whether, since the last call, the client was recognized as a front proxy whose CA became
    /// trusted after its connection had begun: the next connection gets a front proxy's limits.
    fn take_late_recognition(&mut self) -> bool {
        !self.many_users && self.connection.peer().is_front_proxy() && !std::mem::replace(&mut self.many_users, true)
    }

    fn answer(&self, request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
        let (mut head, stream) = request.into_parts();
        // The client has reset it already: thousands of such requests may arrive in one turn
        // (CVE-2023-44487).
        if respond.poll_reset(&mut Context::from_waker(std::task::Waker::noop())).is_ready() {
            return;
        }
        if let Some(unfit) = self.marks.take(&mut head.headers) {
            head.extensions.insert(unfit);
        }
        let account = self.connection.begin((&head.method, &head.uri), &head.headers);
        let body = RequestBody::of_http2(stream, &head.headers, &self.collector, &self.marks, account.clone());
        let request = Box::new(Request::from_parts(head, body));
        let connection = Arc::clone(&self.connection);
        let handling = async move { (handle(connection, request, &account).await, account) };
        tokio::spawn(Responding::new(handling, respond));
    }
}

#[cfg(test)]
mod tests;
