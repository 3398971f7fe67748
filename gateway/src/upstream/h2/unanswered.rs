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

mod exchange;

use std::task::{Context, Poll};
use std::time::Duration;

use h2::RecvStream;
use h2::client::ResponseFuture;
use http::Response;
use tokio::runtime::Handle;

use self::exchange::Exchange;
use super::{Lease, Upload};
use crate::holding::Account;
use crate::limits::LoadPermits;

pub use self::exchange::Failure;

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
    /// The request's account, for as long as the member may continue the request.
    account: Option<Account>,
}

/// The head of a response, the rest of its request, and its lease.
pub type Answer = (Response<RecvStream>, Option<Upload>, Lease);

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
            Poll::Ready(Err(error @ (Failure::Upload(_) | Failure::Interim(_)))) => Poll::Ready(Err(error)),
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
