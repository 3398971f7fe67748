//! Bodies both ways: the request's, remembered as the script reads it; the answer's, as the script
//! makes it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::mpsc;

use super::record::{BodyEnd, Ending, Exchange, Recorded};
use crate::server::Aborted;

/// One piece of a streamed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Body bytes, sent as one frame or chunk where they fit.
    Data(Bytes),
    /// Trailers; the stream ends after them.
    Trailers(HeaderMap),
    /// Ends the stream abnormally: `RST_STREAM` on HTTP/2, a closed connection on HTTP/1.1.
    Abort,
}

/// A request body that remembers what is read of it.
#[derive(Debug)]
pub(super) struct RecordedBody {
    inner: Incoming,
    request: Recorded,
    ended: bool,
}

/// The body of an answer.
#[derive(Debug)]
pub(super) struct ReplyBody {
    source: Source,
    /// The request body, read while the answer is sent.
    upload: Option<RecordedBody>,
    exchange: Option<Exchange>,
}

#[derive(Debug)]
enum Source {
    Full(Bytes),
    Pieces(mpsc::Receiver<Piece>),
    /// Sends `upload` back.
    Echo,
}

// === impl RecordedBody ===

impl RecordedBody {
    pub(super) fn new(inner: Incoming, request: Recorded) -> Self {
        Self { inner, request, ended: false }
    }

    pub(super) async fn read_to_end(&mut self) {
        while !self.ended {
            self.frame().await;
        }
    }

    fn end(&mut self, end: BodyEnd) {
        self.ended = true;
        self.request.end_body(end);
    }
}

impl Body for RecordedBody {
    type Data = Bytes;
    type Error = Aborted;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        let this = self.get_mut();
        if this.ended {
            return Poll::Ready(None);
        }
        match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    this.request.push_body(data);
                }
                if let Some(trailers) = frame.trailers_ref() {
                    this.request.push_trailers(trailers);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(_)) => {
                this.end(BodyEnd::Broken);
                Poll::Ready(Some(Err(Aborted)))
            }
            None => {
                this.end(BodyEnd::Complete);
                Poll::Ready(None)
            }
        }
    }
}

// === impl ReplyBody ===

impl ReplyBody {
    pub(super) fn full(bytes: Bytes) -> Self {
        Self { source: Source::Full(bytes), upload: None, exchange: None }
    }

    pub(super) fn pieces(pieces: mpsc::Receiver<Piece>, upload: RecordedBody) -> Self {
        Self { source: Source::Pieces(pieces), upload: Some(upload), exchange: None }
    }

    pub(super) fn echo(upload: RecordedBody) -> Self {
        Self { source: Source::Echo, upload: Some(upload), exchange: None }
    }

    /// Makes this the answer of `exchange`.
    pub(super) fn of(mut self, exchange: Exchange) -> Self {
        self.exchange = Some(exchange);
        if self.is_end_stream() {
            self.end(Ending::Completed);
        }
        self
    }

    fn end(&mut self, ending: Ending) {
        if let Some(exchange) = self.exchange.take() {
            exchange.end(ending);
        }
    }

    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        match &mut self.source {
            Source::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Source::Pieces(pieces) => Poll::Ready(match ready!(pieces.poll_recv(cx)) {
                Some(Piece::Data(bytes)) => Some(Ok(Frame::data(bytes))),
                Some(Piece::Trailers(trailers)) => {
                    pieces.close();
                    Some(Ok(Frame::trailers(trailers)))
                }
                Some(Piece::Abort) => Some(Err(Aborted)),
                None => None,
            }),
            Source::Echo => match &mut self.upload {
                Some(upload) => Pin::new(upload).poll_frame(cx),
                None => Poll::Ready(None),
            },
        }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Aborted;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        let this = self.get_mut();
        if let (Source::Pieces(_), Some(upload)) = (&this.source, &mut this.upload) {
            while !upload.ended && Pin::new(&mut *upload).poll_frame(cx).is_ready() {}
        }
        let frame = ready!(this.poll_source(cx));
        match &frame {
            Some(Err(Aborted)) => this.end(Ending::Aborted),
            None => this.end(Ending::Completed),
            Some(Ok(frame)) if frame.is_trailers() || this.is_end_stream() => this.end(Ending::Completed),
            Some(Ok(_)) => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.source, Source::Full(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Source::Pieces(_) | Source::Echo => SizeHint::default(),
        }
    }
}
