//! The body of every response: our own bytes, or a member's stream.

mod peeked;

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http_body::{Frame, SizeHint};
use hyper::body::Body;
use net::cancellation::Cancellation;

pub use self::peeked::Peeked;
use crate::headers;
use crate::upstream::Truncated;
use crate::upstream::UpstreamBody;

pub struct ResponseBody {
    content: Content,
    /// Whether it lasts, whatever its speed: a watch, or a followed log.
    lasts: bool,
    /// Set for watches: they end cleanly when the gateway drains.
    drain: Option<Box<Drain>>,
}

struct Drain {
    started: Cancellation,
    /// For streams of lines: whether the last line is complete. Other streams always count as being
    /// between messages.
    between_lines: Option<bool>,
}

enum Content {
    Full(Option<Bytes>),
    Member(Peeked<UpstreamBody>),
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

// === impl ResponseBody ===

impl ResponseBody {
    pub fn empty() -> Self {
        Self::full(Bytes::new())
    }

    pub fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self::of(Content::Full((!bytes.is_empty()).then_some(bytes)))
    }

    pub fn member(body: Peeked<UpstreamBody>) -> Self {
        Self::of(Content::Member(body))
    }

    /// Our own bytes, as they are produced.
    pub fn stream(stream: Pin<Box<dyn Stream<Item = Bytes> + Send>>) -> Self {
        Self::of(Content::Stream(stream))
    }

    fn of(content: Content) -> Self {
        Self { content, lasts: false, drain: None }
    }

    /// Whether the body's duration shows nothing about speed, because it does not end by itself.
    pub fn is_stream(&self) -> bool {
        self.lasts || matches!(self.content, Content::Stream(_))
    }

    /// Whether the body consists of our own bytes, all present.
    pub fn is_own(&self) -> bool {
        matches!(self.content, Content::Full(_))
    }

    /// Removes our own bytes, for the response to a HEAD. Returns their number, if there were any.
    pub fn without_own_bytes(&mut self) -> Option<usize> {
        match &mut self.content {
            Content::Full(bytes) => bytes.take().map(|bytes| bytes.len()),
            Content::Member(_) | Content::Stream(_) => None,
        }
    }

    /// Marks a body that has no end of its own, see [`ResponseBody::is_stream`].
    #[must_use]
    pub fn lasting(self) -> Self {
        Self { lasts: true, ..self }
    }

    /// Ends the body cleanly when it is next idle after `drain` fires; with `lines`, never inside a
    /// line. Only for watches, which clients begin again: of anything else, a clean end says that
    /// it is whole.
    #[must_use]
    pub fn ending_with(mut self, drain: Cancellation, lines: bool) -> Self {
        self.drain = Some(Box::new(Drain { started: drain, between_lines: lines.then_some(true) }));
        self
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Truncated;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Truncated>>> {
        let this = &mut *self;
        let mut polled = match &mut this.content {
            Content::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Content::Member(body) => Pin::new(body).poll_frame(cx),
            Content::Stream(stream) => {
                stream.as_mut().poll_next(cx).map(|next| next.map(|bytes| Ok(Frame::data(bytes))))
            }
        };
        if let Poll::Ready(Some(Ok(frame))) = &mut polled
            && let Some(trailers) = frame.trailers_mut()
        {
            headers::to_client(trailers);
        }
        if let Some(drain) = &mut this.drain
            && drain.ends(&polled, cx)
        {
            this.content = Content::Full(None);
            this.drain = None;
            return Poll::Ready(None);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Full(bytes) => bytes.is_none(),
            Content::Member(body) => body.is_end_stream(),
            Content::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Content::Member(body) => body.size_hint(),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}

// === impl Drain ===

impl Drain {
    /// Whether the stream must end instead of waiting: it is idle, and what came before is
    /// complete. Clients of a watch then start it again, at another replica.
    fn ends(&mut self, polled: &Poll<Option<Result<Frame<Bytes>, Truncated>>>, cx: &mut Context<'_>) -> bool {
        match (polled, &mut self.between_lines) {
            (Poll::Ready(Some(Ok(frame))), Some(between_lines)) => {
                if let Some(last) = frame.data_ref().and_then(|data| data.last()) {
                    *between_lines = *last == b'\n';
                }
                false
            }
            (Poll::Pending, between_lines) => {
                // Polled in any case, because this wakes an idle stream.
                Pin::new(&mut self.started).poll(cx).is_ready() && between_lines.unwrap_or(true)
            }
            _ => false,
        }
    }
}
