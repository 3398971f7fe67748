//! A request that was sent and has no response yet.
//!
//! If it is cancelled in this state, the member may continue it: Go's HTTP/2 server runs a handler
//! until that notices the reset, queues streams beyond its limit meanwhile, and ends the
//! *connection* when four times its limit are queued (`serverConn.scheduleHandler` in
//! `x/net/http2`, since CVE-2023-44487). All callers share the connection. So:
//!
//! - A few are reset at once ([`Resets`]). The queue is first in, first out: the response to a
//!   later stream shows that the member has passed them, and they are forgotten.
//! - Beyond these, a cancelled request keeps its stream, and its share of the user's limits,
//!   until the member has responded: the load is the same, so a caller gains nothing by cancelling.
//!   Only then is it reset. With an unfinished upload it is reset at once, and its stream is given
//!   back after the response to a later stream.
//!
//! So a member's queue never holds more than the streams in use and those few: less than twice its
//! stream limit, however slowly its handlers notice. Resets after the response are safe, because
//! the response shows that the handler has begun. To count cancellations by user and second would
//! be a guess at the member's speed. Separate connections for callers that cancel often would be
//! dialled forever.

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

/// Permits for a request that the member continues after its caller has left. Called only in that
/// case.
pub type Lingers<'a> = &'a (dyn Fn() -> LoadPermits + Send + Sync);

/// A kube-apiserver responds within a minute (`--request-timeout`) to all but watches, logs and
/// proxied services, and to watches at once. A request without a response by then is reset. The
/// connection takes no more requests if too many resets wait already, or if no later stream is
/// answered within the same time after an upload that was reset.
const ANSWERED_WITHIN: Duration = Duration::from_secs(65);

/// Most interim responses (1xx) to one request. An API server relays those of a workload, which
/// needs only a few, and each is work on a shared connection. Without a limit they could continue
/// as long as the caller waits.
const MOST_INTERIM: usize = 1000;

/// See the module's text.
pub struct Unanswered<'a> {
    /// `None` once there is a response.
    exchange: Option<Exchange>,
    lingers: Lingers<'a>,
    /// The request's account: h2 keeps its head while the member does not read.
    account: Option<Account>,
}

struct Exchange {
    response: ResponseFuture,
    upload: Option<Upload>,
    lease: Lease,
    /// Interim responses so far. `None` until the first poll, when there cannot be any.
    interim: Option<usize>,
}

/// The head of a response, the rest of its request, and its lease.
pub type Answer = (Response<RecvStream>, Option<Upload>, Lease);

/// Why there is no response.
pub enum Failure {
    Upstream(h2::Error),
    /// The connection gave way.
    Shed,
    /// The member sent something other than a response.
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

    /// Returns the response head and the rest of the upload. Drives the request body meanwhile.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Answer, Failure>> {
        let exchange = self.exchange.as_mut().expect("polled until it is answered");
        match exchange.poll(cx) {
            Poll::Pending => Poll::Pending,
            // The member may still be working on the request.
            Poll::Ready(Err(error @ (Failure::Client(_) | Failure::Unfit(_) | Failure::Interim(_)))) => {
                Poll::Ready(Err(error))
            }
            Poll::Ready(Err(error)) => {
                // The member ended the stream, so there is nothing to cancel.
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
        // A drop resets the stream. A connection that takes no more streams fills no queue.
        if connection.is_closing() || connection.resets().admit(exchange.stream(), connection.max_streams()) {
            return;
        }
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(exchange.linger((self.lingers)(), self.account.take()))),
            Err(_) => connection.close(),
        }
    }
}

/// Completes when the request must give way for the bytes that it holds.
async fn ended(account: Option<&Account>) {
    match account {
        Some(account) => account.ended().await,
        None => std::future::pending().await,
    }
}

// === impl Exchange ===

impl Exchange {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response<RecvStream>, Failure>> {
        // The head is polled first: an early response must not wait for a slow client.
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

    /// Consumes interim responses, which h2 would discard uncounted. Pending if no response follows
    /// them yet: h2 wakes the task for it, and need not be polled, and locked, again.
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
                // The response repeats the error.
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

    /// Reports the response: it proves that the member's queue has no earlier streams.
    fn answered(&self) {
        let resets = self.lease.connection().resets();
        if resets.any() {
            resets.answered(self.stream());
        }
    }

    /// Keeps the stream, its permits and its account for as long as the member may continue the
    /// request.
    async fn linger(self, permits: LoadPermits, account: Option<Account>) {
        let stream = self.stream();
        let Self { mut response, upload, lease, .. } = self;
        let resets = lease.connection().resets();
        let answer = async {
            // The rest of the request body will never come, so waiting for a response would only
            // occupy the member.
            if upload.is_some() {
                return None;
            }
            tokio::select! {
                answer = timeout(ANSWERED_WITHIN, &mut response) => Some(answer),
                // The reset makes h2 release the head.
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
