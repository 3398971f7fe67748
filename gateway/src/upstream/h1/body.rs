//! A response body over HTTP/1.1, with the exchange that it belongs to.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::{Body, Incoming};
use tokio_util::task::AbortOnDropHandle;

use super::{Buffer, Exchange};
use crate::holding::Tally;
use crate::upstream::{Lost, Truncated};

pub struct H1Body {
    incoming: HeldIncoming,
    /// None once the response has ended or failed.
    exchange: Option<Exchange>,
}

/// A body from hyper. Counts what hyper has read and its reader has not taken.
pub struct HeldIncoming {
    incoming: Incoming,
    held: Option<(Tally, Arc<Buffer>)>,
    #[allow(dead_code, reason = "ends the connection when the body is dropped")]
    driver: Option<AbortOnDropHandle<()>>,
}

// === impl H1Body ===

impl H1Body {
    pub fn new(incoming: HeldIncoming, exchange: Exchange) -> Self {
        Self { incoming, exchange: Some(exchange) }
    }

    pub fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Truncated>>> {
        match ready!(Pin::new(&mut self.incoming).poll_frame(cx)) {
            Some(Ok(frame)) => {
                if self.incoming.is_end_stream() {
                    self.end();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                let interrupted = self.exchange.take().and_then(|exchange| exchange.interrupted());
                Poll::Ready(Some(Err(Truncated(interrupted.map_or_else(|| error.into(), Lost::Upload)))))
            }
            None => {
                self.end();
                Poll::Ready(None)
            }
        }
    }

    pub fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    pub fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }

    fn end(&mut self) {
        self.incoming.held = None;
        if let Some(exchange) = self.exchange.take() {
            exchange.end();
        }
    }
}

impl Drop for H1Body {
    fn drop(&mut self) {
        // Responses without a body (HEAD, 204, 304) are often dropped without a poll.
        if self.incoming.is_end_stream() {
            self.end();
        }
    }
}

// === impl HeldIncoming ===

impl HeldIncoming {
    pub fn new(incoming: Incoming, held: Option<(Tally, Arc<Buffer>)>) -> Self {
        Self { incoming, held, driver: None }
    }

    /// The body ends its connection, which `driver` drives.
    pub fn ending(self, driver: AbortOnDropHandle<()>) -> Self {
        Self { driver: Some(driver), ..self }
    }
}

impl Body for HeldIncoming {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some((tally, buffer)) = &mut self.held {
            tally.set(buffer.held());
        }
        Pin::new(&mut self.incoming).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
