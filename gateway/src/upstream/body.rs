//! A member's response body, streamed as it comes.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use http_body::{Frame, SizeHint};
use hyper::body::{Body, Incoming};

use super::{h1, h2 as upstream_h2};

/// The body and what its exchange still holds: the rest of the upload, the stream or connection. Dropping it early
/// cancels the exchange at the member.
pub struct UpstreamBody(Inner);

enum Inner {
    H2(Box<H2Body>),
    H1(Box<H1Body>),
}

struct H2Body {
    stream: RecvStream,
    /// Dropped with the response: after its end the member has no use for the rest of the request (RFC 9113 §8.1).
    upload: Option<upstream_h2::Upload>,
    lease: upstream_h2::Lease,
    data_ended: bool,
}

struct H1Body {
    incoming: Incoming,
    /// Gone when the response has ended or failed.
    exchange: Option<h1::Exchange>,
}

/// The member or the network broke off in mid-body. Passed on as an aborted stream, never as a clean end: a list cut short
/// must not look complete.
#[derive(Debug, thiserror::Error)]
#[error("the member's response was cut off: {0}")]
pub struct Truncated(String);

// === impl UpstreamBody ===

impl UpstreamBody {
    pub fn h2(stream: RecvStream, upload: Option<upstream_h2::Upload>, lease: upstream_h2::Lease) -> Self {
        Self(Inner::H2(Box::new(H2Body { stream, upload, lease, data_ended: false })))
    }

    pub fn h1(incoming: Incoming, exchange: h1::Exchange) -> Self {
        Self(Inner::H1(Box::new(H1Body { incoming, exchange: Some(exchange) })))
    }
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = Truncated;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Truncated>>> {
        match &mut self.0 {
            Inner::H2(body) => body.poll_frame(cx),
            Inner::H1(body) => body.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::H2(body) => body.data_ended || body.stream.is_end_stream(),
            Inner::H1(body) => body.incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            // The length travels in the response's Content-Length header, which is passed on.
            Inner::H2(_) => SizeHint::default(),
            Inner::H1(body) => body.incoming.size_hint(),
        }
    }
}

// === impl H2Body ===

impl H2Body {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Truncated>>> {
        if self.upload.as_mut().is_some_and(|upload| upload.poll(cx).is_ready()) {
            self.upload = None;
        }
        if !self.data_ended {
            match ready!(self.stream.poll_data(cx)) {
                Some(Ok(data)) => {
                    self.lease.connection().saw_traffic();
                    // Given back when handed on: the client's own window holds it from here.
                    let _ = self.stream.flow_control().release_capacity(data.len());
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Some(Err(error)) => return Poll::Ready(self.cut_off(&error)),
                None => self.data_ended = true,
            }
        }
        match ready!(self.stream.poll_trailers(cx)) {
            Ok(Some(trailers)) => Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
            Ok(None) => Poll::Ready(None),
            Err(error) => Poll::Ready(self.cut_off(&error)),
        }
    }

    fn cut_off(&self, error: &h2::Error) -> Option<Result<Frame<Bytes>, Truncated>> {
        // A server that answered early resets with NO_ERROR to stop the upload; its response was complete (RFC 9113 §8.1).
        if error.is_reset() && error.reason() == Some(h2::Reason::NO_ERROR) && self.stream.is_end_stream() {
            return None;
        }
        Some(Err(Truncated(error.to_string())))
    }
}

// === impl H1Body ===

impl H1Body {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Truncated>>> {
        let frame = ready!(Pin::new(&mut self.incoming).poll_frame(cx));
        match frame {
            Some(Ok(frame)) => {
                if self.incoming.is_end_stream() {
                    self.end();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                self.exchange = None;
                Poll::Ready(Some(Err(Truncated(error.to_string()))))
            }
            None => {
                self.end();
                Poll::Ready(None)
            }
        }
    }

    fn end(&mut self) {
        if let Some(mut exchange) = self.exchange.take() {
            exchange.end();
        }
    }
}

impl Drop for H1Body {
    fn drop(&mut self) {
        // Bodyless responses (HEAD, 204, 304) are often dropped without being polled.
        if self.incoming.is_end_stream() {
            self.end();
        }
    }
}
