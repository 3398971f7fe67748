//! A request that was sent and is not answered yet.
//!
//! Cancelled in this state, it may go on at the member: Go's HTTP/2 server runs a handler until
//! that has noticed the reset, queues the streams beyond its limit meanwhile, and ends the
//! *connection* when four times its limit are queued (`serverConn.scheduleHandler` in
//! `x/net/http2`, since CVE-2023-44487). The connection is everybody's. So:
//!
//! - A few are reset at once ([`Resets`]). The queue is first in, first out: an answer to a later
//!   stream shows that the member has got past them, and they are forgotten.
//! - Beyond, a cancelled request keeps its place until the member has answered it, and its user's
//!   part in the limits as well: it is load as it was before, and cancelling buys nobody anything.
//!   Only then it is reset. One whose upload is unfinished is reset at once, and its place waits
//!   for the answer to a later stream.
//!
//! So a member's queue never holds more than the streams in use and those few: less than twice its
//! stream limit, however long its handlers take to notice. Resets after the answer need no care:
//! the answer is the proof. Counting cancellations by user and second would guess how fast a member
//! is; connections of their own for those who cancel much would be dialled for ever.

use std::task::{Context, Poll};
use std::time::Duration;

use h2::RecvStream;
use h2::client::ResponseFuture;
use http::{Response, StatusCode};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::upload::UploadEnd;
use super::{Lease, Upload};
use crate::headers::size::Unfit;
use crate::holding::Account;
use crate::limits::LoadPermits;
use crate::upstream::Lost;

/// What a request is counted as while the member goes on with it though its caller has left. Asked
/// for when that happens only.
pub type Lingers<'a> = &'a (dyn Fn() -> LoadPermits + Send + Sync);

/// A kube-apiserver answers within a minute (`--request-timeout`) what is no watch, log or proxied
/// service, and watches at once. What is not answered then is reset, and if nothing after it was
/// answered either, the connection takes no more requests.
const ANSWERED_WITHIN: Duration = Duration::from_secs(65);

/// Interim answers (1xx) that a request waits through. An API server relays those of a workload,
/// which has no reason for more than a few, and each is work for the connection of all: without a
/// number it would go on for as long as the caller waits.
const MOST_INTERIM: usize = 1000;

/// See the module's text.
pub struct Unanswered<'a> {
    /// `None` once it was answered.
    exchange: Option<Exchange>,
    lingers: Lingers<'a>,
    /// Of the request: h2 has its head for as long as the member does not read.
    account: Option<Account>,
}

struct Exchange {
    response: ResponseFuture,
    upload: Option<Upload>,
    lease: Lease,
    /// Interim answers so far; `None` until the first look, at which there cannot be any.
    interim: Option<usize>,
}

/// The head of an answer, the rest of its request, and its place.
pub type Answer = (Response<RecvStream>, Option<Upload>, Lease);

/// Why there is no answer.
pub enum Failure {
    Upstream(h2::Error),
    /// The connection gave way.
    Shed,
    /// The member sent what is no answer.
    Interim(&'static str),
    Client(Lost),
    Unfit(Unfit),
}

// === impl Unanswered ===

impl<'a> Unanswered<'a> {
    pub fn new(
        response: ResponseFuture,
        upload: Option<Upload>,
        lease: Lease,
        lingers: Lingers<'a>,
        account: Option<Account>,
    ) -> Self {
        Self { exchange: Some(Exchange { response, upload, lease, interim: None }), lingers, account }
    }

    /// The head of the answer, with the rest of the upload. The request body moves meanwhile.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Answer, Failure>> {
        let exchange = self.exchange.as_mut().expect("polled until it is answered");
        match exchange.poll(cx) {
            Poll::Pending => Poll::Pending,
            // The member may be at work on it still.
            Poll::Ready(Err(error @ (Failure::Client(_) | Failure::Unfit(_) | Failure::Interim(_)))) => {
                Poll::Ready(Err(error))
            }
            Poll::Ready(Err(error)) => {
                // The member ended it, so there is nothing to cancel.
                self.exchange = None;
                Poll::Ready(Err(error))
            }
            Poll::Ready(Ok(answer)) => {
                exchange.answered();
                let Exchange { upload, lease, .. } = self.exchange.take().expect("just used");
                Poll::Ready(Ok((answer, upload, lease)))
            }
        }
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let Some(exchange) = self.exchange.take() else { return };
        let connection = exchange.lease.connection();
        // Dropping resets. A connection that takes no more streams fills no queue.
        if connection.is_closing() || connection.resets().admit(exchange.stream(), connection.max_streams()) {
            return;
        }
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(exchange.linger((self.lingers)(), self.account.take()))),
            Err(_) => connection.close(),
        }
    }
}

/// The request holds too much, for what it is.
async fn ended(account: Option<&Account>) {
    match account {
        Some(account) => account.ended().await,
        None => std::future::pending().await,
    }
}

// === impl Exchange ===

impl Exchange {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response<RecvStream>, Failure>> {
        // The head is polled first: a member that answers early must not wait for a slow client.
        if self.pass_interim(cx)?.is_ready()
            && let Poll::Ready(answer) = std::pin::Pin::new(&mut self.response).poll(cx)
        {
            let shed = |error| if self.lease.connection().is_shed() { Failure::Shed } else { Failure::Upstream(error) };
            return Poll::Ready(answer.map_err(shed));
        }
        match self.upload.as_mut().map(|upload| upload.poll(cx)) {
            Some(Poll::Ready(UploadEnd::ClientGone(error))) => Poll::Ready(Err(Failure::Client(error))),
            Some(Poll::Ready(UploadEnd::Unfit(unfit))) => Poll::Ready(Err(Failure::Unfit(unfit))),
            Some(Poll::Ready(UploadEnd::Sent | UploadEnd::Stopped)) => {
                self.upload = None;
                Poll::Pending
            }
            Some(Poll::Pending) | None => Poll::Pending,
        }
    }

    /// Takes in interim answers, which h2 would throw away uncounted. Pending if there is no answer
    /// behind them: h2 wakes for it, and need not be asked, and locked, again.
    fn pass_interim(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, Failure> {
        let Some(interim) = &mut self.interim else {
            self.interim = Some(0);
            return Ok(Poll::Ready(()));
        };
        loop {
            match self.response.poll_informational(cx) {
                Poll::Ready(Some(Ok(head))) if head.status() == StatusCode::SWITCHING_PROTOCOLS => {
                    return Err(Failure::Interim(
                        "it switched protocols, which HTTP/2 does not support (RFC 9113 §8.6)",
                    ));
                }
                Poll::Ready(Some(Ok(_))) => *interim += 1,
                // An error comes again with the answer.
                Poll::Ready(None | Some(Err(_))) => return Ok(Poll::Ready(())),
                Poll::Pending => return Ok(Poll::Pending),
            }
            if *interim > MOST_INTERIM {
                return Err(Failure::Interim("it sent more than 1,000 interim responses"));
            }
        }
    }

    /// The stream's number. Takes a lock.
    fn stream(&self) -> u32 {
        self.response.stream_id().as_u32()
    }

    /// What is answered proves that streams before it are past the member's queue.
    fn answered(&self) {
        let resets = self.lease.connection().resets();
        if resets.any() {
            resets.answered(self.stream());
        }
    }

    /// Keeps the place, and what the request is counted as and holds, for as long as the member may
    /// go on with it.
    async fn linger(self, permits: LoadPermits, account: Option<Account>) {
        let stream = self.stream();
        let Self { mut response, upload, lease, .. } = self;
        let resets = lease.connection().resets();
        let answer = async {
            // The rest of its body will never come: waiting for an answer would only hold up the
            // member.
            if upload.is_some() {
                return None;
            }
            tokio::select! {
                answer = timeout(ANSWERED_WITHIN, &mut response) => Some(answer),
                // The reset takes its head back from h2.
                () = ended(account.as_ref()) => None,
            }
        };
        let passed = if let Some(answer) = answer.await {
            if matches!(answer, Ok(Ok(_))) {
                resets.answered(stream);
            }
            answer.is_ok() || resets.admit(stream, lease.connection().max_streams())
        } else {
            drop((response, upload, account));
            timeout(ANSWERED_WITHIN, resets.passed(stream)).await.is_ok()
        };
        if !passed {
            lease.connection().close();
        }
        drop((lease, permits));
    }
}
