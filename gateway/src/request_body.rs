//! The body of a request: the client's, or none.
//!
//! A request without a body also has none when it is sent a second time, because the client's own
//! body was consumed with the first.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body::{Frame, SizeHint};
use hyper::body::{Body, Incoming};

use crate::headers::size::Unfit;
use crate::holding::Account;
use crate::inbound::Marks;
use crate::unread::{Collector, Source};

/// Small, because requests are moved often, and most have no body.
pub struct RequestBody(Content);

enum Content {
    None(Option<Account>),
    Http1(Box<Http1>),
    Http2(Box<Http2>),
}

struct Http1 {
    incoming: Incoming,
    account: Account,
}

struct Http2 {
    source: Source,
    /// Bytes to come, if the client has announced them.
    length: Option<u64>,
    data_ended: bool,
    marks: Marks,
    account: Account,
}

/// Why a body is not passed on to its end. What has arrived is incomplete, however the client ended
/// it.
#[derive(Debug, thiserror::Error)]
pub enum Interrupted {
    #[error(transparent)]
    Http1(#[from] hyper::Error),
    #[error(transparent)]
    Http2(#[from] h2::Error),
    #[error("its trailers have {0}")]
    Trailers(Unfit),
}

// === impl RequestBody ===

impl RequestBody {
    /// Bytes held for the request count for `account`.
    pub fn empty(account: Option<Account>) -> Self {
        Self(Content::None(account))
    }

    pub fn of_http1(incoming: Incoming, account: Account) -> Self {
        if incoming.is_end_stream() {
            return Self::empty(Some(account));
        }
        Self(Content::Http1(Box::new(Http1 { incoming, account })))
    }

    pub fn of_http2(
        stream: RecvStream,
        headers: &HeaderMap,
        collector: &Arc<Collector>,
        marks: &Marks,
        account: Account,
    ) -> Self {
        let mut source = Source::new(stream, collector, Some(&account));
        source.keep_for(&account);
        if source.is_end_stream() {
            return Self::empty(Some(account));
        }
        // h2 resets a stream with more or fewer bytes than announced.
        let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        Self(Content::Http2(Box::new(Http2 { source, length, data_ended: false, marks: marks.clone(), account })))
    }

    /// The request's account, whatever the body is.
    pub fn account(&self) -> Option<&Account> {
        match &self.0 {
            Content::None(account) => account.as_ref(),
            Content::Http1(body) => Some(&body.account),
            Content::Http2(body) => Some(&body.account),
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Interrupted;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Interrupted>>> {
        // Counts until the data are sent.
        let (polled, account) = match &mut self.0 {
            Content::None(_) => return Poll::Ready(None),
            Content::Http1(body) => {
                (Pin::new(&mut body.incoming).poll_frame(cx).map_err(Interrupted::from), &body.account)
            }
            Content::Http2(body) => (body.poll_frame(cx), &body.account),
        };
        polled.map_ok(|frame| frame.map_data(|data| if data.is_empty() { data } else { account.charge(data) }))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::None(_) => true,
            Content::Http1(body) => body.incoming.is_end_stream(),
            Content::Http2(body) => body.source.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::None(_) => SizeHint::with_exact(0),
            Content::Http1(body) => body.incoming.size_hint(),
            Content::Http2(body) => body.length.map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}

// === impl Http2 ===

impl Http2 {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Interrupted>>> {
        if !self.data_ended {
            if let Some(data) = ready!(self.source.poll_data(cx)?) {
                self.length = self.length.map(|length| length.saturating_sub(data.len() as u64));
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            self.data_ended = true;
        }
        let Some(mut trailers) = ready!(self.source.poll_trailers(cx)?) else { return Poll::Ready(None) };
        if let Some(unfit) = self.marks.take(&mut trailers) {
            return Poll::Ready(Some(Err(Interrupted::Trailers(unfit))));
        }
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }
}
