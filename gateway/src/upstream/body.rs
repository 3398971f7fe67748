//! A member's response body, streamed as it arrives, and the errors of one that is cut off.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Body;

use super::{Truncated, h1, h2};
use crate::headers::size;

/// The body, and what its exchange still holds: the rest of the upload, the stream or connection.
/// An early drop cancels the exchange at the member.
pub enum UpstreamBody {
    H2(Box<h2::H2Body>),
    H1(Box<h1::H1Body>),
}

// === impl UpstreamBody ===

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = Truncated;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Truncated>>> {
        let polled = match &mut *self {
            Self::H2(body) => body.poll_frame(cx),
            Self::H1(body) => body.poll_frame(cx),
        };
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(Err(unfit)) = frame.trailers_ref().map(size::of_trailers)
        {
            return Poll::Ready(Some(Err(Truncated(format!("its trailers have {unfit}").into()))));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::H2(body) => body.is_end_stream(),
            Self::H1(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            // The length is in the response's Content-Length, which is passed on.
            Self::H2(_) => SizeHint::default(),
            Self::H1(body) => body.size_hint(),
        }
    }
}
