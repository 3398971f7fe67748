//! HTTP/1.1 to members without HTTP/2: one request at a time per connection, and connections are
//! reused.

mod abortable;
mod body;
mod idle;
mod reading;

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::header::HOST;
use http::{Request, Response, Version};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use net::cancellation::Cancellation;
use net::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use self::abortable::{AbortHandle, AbortableBody, abortable};
pub use self::body::{H1Body, HeldIncoming};
pub use self::idle::{ConnectionPermit, Idle, MAX_OPEN};
use self::reading::Buffer;
pub use self::reading::Reading;
use super::connect::{ConnectError, Target};
use super::shed::{ConnectionBytes, Counted};
use super::{Lost, SendError};
use crate::holding::Account;
use crate::request_body::{BoxedRequest, Interrupted};

/// Largest response head that is read; its connection serves only this exchange. The limit for
/// heads that are passed on is lower.
pub const HEADER_BYTES: usize = 1024 * 1024;
/// Most header lines of a response.
pub const HEADER_LINES: usize = 2048;
/// A connection that was just returned needs a moment to finish its exchange. One that takes longer
/// is not worth the wait.
const READY_WITHIN: Duration = Duration::from_millis(100);

/// One idle or leased connection.
pub struct Connection {
    sender: http1::SendRequest<AbortableBody>,
    leaving: Option<CancellationToken>,
    buffer: Arc<Buffer>,
    /// Boxed: every waiting request's future has space for a lease.
    held: Box<ConnectionBytes>,
    /// hyper would close by itself, but not before what it has for the member is written: while the
    /// member reads nothing, that would stay for as long as the member likes, and count for nobody.
    #[allow(dead_code, reason = "ends the connection when it is dropped")]
    driver: AbortOnDropHandle<()>,
    #[allow(dead_code, reason = "counts the connection as open until it is dropped")]
    permit: ConnectionPermit,
}

/// A connection in exclusive use. Reused only after [`Lease::give_back`].
pub struct Lease {
    connection: Connection,
    idle: Weak<Idle>,
}

/// The outcome of sending a request.
pub enum Sent {
    /// Boxed: every waiting request's future has space for one.
    Response(Response<Box<H1Body>>),
    /// Nothing was sent, because the idle connection was closed. Returns the complete request and
    /// the reason.
    NotSent(BoxedRequest, Lost),
}

/// Sends `request` on the leased connection.
pub async fn send(mut lease: Lease, target: &Target, mut request: BoxedRequest) -> Result<Sent, SendError> {
    let ready = poll_fn(|cx| lease.connection.sender.poll_ready(cx));
    match timeout(READY_WITHIN, ready).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Ok(Sent::NotSent(request, error.into())),
        Err(_) => return Ok(Sent::NotSent(request, "the connection was still busy".into())),
    }
    *request.version_mut() = Version::HTTP_11;
    request.headers_mut().insert(HOST, target.host_header.clone());
    let (head, body) = request.into_parts();
    let account = body.account().cloned();
    let (body, abort) = abortable(body);
    let exchange = Exchange { lease: Some(lease), abort, account };
    exchange.send(Request::from_parts(head, body)).await
}

/// One request on one connection. A drop before [`Exchange::end`] also ends the connection.
pub struct Exchange {
    lease: Option<Lease>,
    abort: AbortHandle,
    /// The request's account.
    account: Option<Account>,
}

// === impl Exchange ===

impl Exchange {
    async fn send(mut self, request: Request<AbortableBody>) -> Result<Sent, SendError> {
        let lease = self.lease.as_mut().expect("held until the end");
        lease.connection.buffer.expect_body(false);
        if let (Some(backlog), Some(account)) = (&lease.connection.held.backlog, &self.account) {
            backlog.count_for(account);
        }
        match lease.connection.sender.try_send_request(request).await {
            Ok(response) => {
                let buffer = Arc::clone(&lease.connection.buffer);
                buffer.expect_body(true);
                let (head, body) = response.into_parts();
                let held = self.account.as_ref().map(|account| (account.tally(), buffer));
                let body = Box::new(H1Body::new(HeldIncoming::new(body, held), self));
                Ok(Sent::Response(Response::from_parts(head, body)))
            }
            Err(_) if lease.connection.held.account.is_ended() => Err(SendError::Shed),
            Err(mut refused) => {
                // hyper returns the request only if it wrote none of it.
                let unsent = refused.take_message().and_then(|request| {
                    let (head, body) = request.into_parts();
                    Some(Box::new(Request::from_parts(head, body.into_inner()?)))
                });
                let lost = refused.into_error().into();
                match (unsent, self.interrupted()) {
                    (Some(request), _) => Ok(Sent::NotSent(request, lost)),
                    (None, Some(interrupted)) => Err(interrupted.into()),
                    (None, None) => Err(SendError::Broken(lost)),
                }
            }
        }
    }

    /// Why the client's upload broke off, if it did: hyper ends the connection then.
    pub fn interrupted(&self) -> Option<Interrupted> {
        self.abort.interrupted()
    }

    /// The response was read to its end. The connection serves the next request, unless this
    /// request was not sent completely. A member may answer without reading: what hyper has for it
    /// then counts for nobody once the request is over.
    pub fn end(mut self) {
        if self.abort.has_ended()
            && let Some(lease) = self.lease.take_if(|lease| !lease.connection.buffer.is_unwritten())
        {
            lease.connection.held.request_is_over();
            lease.give_back();
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Some(lease) = &self.lease {
            // The connection ends when its task does, soon after this.
            lease.connection.held.request_is_over();
        }
        self.abort.abort();
    }
}

// === impl Connection ===

impl Connection {
    pub async fn start(
        transport: Transport,
        permit: ConnectionPermit,
        target: &Target,
        held: ConnectionBytes,
    ) -> Result<Self, ConnectError> {
        let leaving = transport.leaving();
        Self::over(transport, leaving, permit, target, held).await
    }

    async fn over<T>(
        transport: T,
        leaving: Option<CancellationToken>,
        permit: ConnectionPermit,
        target: &Target,
        held: ConnectionBytes,
    ) -> Result<Self, ConnectError>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (transport, buffer) = Reading::new(transport, &held.account);
        let (sender, driver) = http1::Builder::new()
            .max_buf_size(HEADER_BYTES)
            .max_headers(HEADER_LINES)
            .handshake(TokioIo::new(transport))
            .await
            .map_err(|error| ConnectError::Http2 { address: target.address(), source: error.into() })?;
        let driver = Counted::new(driver, &held);
        let ended = Cancellation::of(target.ended.clone());
        let driver = tokio::spawn(async move {
            let end = tokio::select! {
                end = driver => end,
                () = ended => return,
            };
            let reason = match end {
                Ok(Ok(())) => return,
                Ok(Err(error)) => Lost::from(error),
                Err(gave_way) => Lost::from(gave_way),
            };
            tracing::debug!(%reason, "connection to member ended");
        });
        let driver = AbortOnDropHandle::new(driver);
        Ok(Self { sender, leaving, buffer, held: Box::new(held), driver, permit })
    }

    /// Closed, or about to be.
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed() || self.leaving.as_ref().is_some_and(CancellationToken::is_cancelled)
    }
}

// === impl Lease ===

impl Lease {
    pub fn new(connection: Connection, idle: Weak<Idle>) -> Self {
        Self { connection, idle }
    }

    pub fn give_back(self) {
        if let Some(idle) = self.idle.upgrade() {
            idle.put(self.connection);
        }
    }
}

#[cfg(test)]
mod tests;
