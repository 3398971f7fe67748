//! The body of a request: the client's, or none.
//!
//! None is also what a request without a body has when it is sent a second time: the client's own has gone with the first.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body::{Frame, SizeHint};
use hyper::body::{Body, Incoming};

use crate::unread::{Desk, Source};

pub struct RequestBody(Content);

enum Content {
    None,
    Http1(Incoming),
    Http2 {
        source: Source,
        /// Bytes to come, if the client has said how many.
        length: Option<u64>,
        data_ended: bool,
    },
}

/// The client stopped sending: what has arrived is not the whole body, however the client put it.
#[derive(Debug, thiserror::Error)]
pub enum Interrupted {
    #[error(transparent)]
    Http1(#[from] hyper::Error),
    #[error(transparent)]
    Http2(#[from] h2::Error),
}

// === impl RequestBody ===

impl RequestBody {
    pub fn empty() -> Self {
        Self(Content::None)
    }

    /// What follows the `headers` on their stream. Until it is read, the `desk` keeps it.
    pub fn of_http2(stream: RecvStream, headers: &HeaderMap, desk: &Arc<Desk>) -> Self {
        let source = Source::new(stream, desk);
        if source.is_end_stream() {
            return Self::empty();
        }
        // h2 resets a stream whose data are more or less than this.
        let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        Self(Content::Http2 { source, length, data_ended: false })
    }
}

impl From<Incoming> for RequestBody {
    fn from(body: Incoming) -> Self {
        Self(Content::Http1(body))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Interrupted;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Interrupted>>> {
        match &mut self.0 {
            Content::None => Poll::Ready(None),
            Content::Http1(body) => Pin::new(body).poll_frame(cx).map_err(Interrupted::from),
            Content::Http2 { source, length, data_ended } => {
                if !*data_ended {
                    match ready!(source.poll_data(cx)?) {
                        Some(data) => {
                            if let Some(length) = length {
                                *length = length.saturating_sub(data.len() as u64);
                            }
                            return Poll::Ready(Some(Ok(Frame::data(data))));
                        }
                        None => *data_ended = true,
                    }
                }
                let trailers = ready!(source.poll_trailers(cx)?);
                Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::None => true,
            Content::Http1(body) => body.is_end_stream(),
            Content::Http2 { source, .. } => source.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::None => SizeHint::with_exact(0),
            Content::Http1(body) => body.size_hint(),
            Content::Http2 { length, .. } => length.map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}
