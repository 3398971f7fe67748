//! The body of a request: the client's, or none.
//!
//! A request without a body also has none when it is sent a second time, because the client's own
//! body was consumed with the first.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Request};
use http_body::{Frame, SizeHint};
use hyper::body::{Body, Incoming};

use crate::headers::size::Unfit;
use crate::holding::{Account, Tally};
use crate::inbound::Marks;
use crate::unread::{Collector, Source};

/// Small, because most requests have none.
pub struct RequestBody(Content);

/// A request on its way through the gateway. Boxed: it passes a dozen futures, each of which would
/// move its 240 bytes, and keep room for them until the response.
pub type BoxedRequest = Box<Request<RequestBody>>;

enum Content {
    None(Option<Account>),
    Http1(Box<Http1>),
    Http2(Box<Http2>),
}

struct Http1 {
    incoming: Incoming,
    ahead: ReadAhead,
    /// Counts what hyper has read ahead. The pieces that it has handed on count apart.
    tally: Tally,
    account: Account,
}

/// How much of a connection's current body hyper may have read that has not been taken from it: the
/// room of its last read.
#[derive(Debug, Clone, Default)]
pub struct ReadAhead(Arc<AtomicUsize>);

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

    pub fn of_http1(incoming: Incoming, ahead: &ReadAhead, account: Account) -> Self {
        if incoming.is_end_stream() {
            return Self::empty(Some(account));
        }
        let (ahead, tally) = (ahead.clone(), account.tally());
        Self(Content::Http1(Box::new(Http1 { incoming, ahead, tally, account })))
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
        // Counts until the data are sent, with what HTTP/2 keeps for them.
        let (polled, account) = match &mut self.0 {
            Content::None(_) => return Poll::Ready(None),
            Content::Http1(body) => (body.poll_frame(cx), &body.account),
            Content::Http2(body) => (body.poll_frame(cx), &body.account),
        };
        polled.map_ok(|frame| frame.map_data(|data| if data.is_empty() { data } else { account.charge_frame(data) }))
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

// === impl ReadAhead ===

impl ReadAhead {
    /// hyper reads, and has so much room.
    pub fn note(&self, room: usize) {
        self.0.store(room, Ordering::Relaxed);
    }

    /// The last read, and what waits to be taken.
    fn held(&self) -> usize {
        2 * self.0.load(Ordering::Relaxed)
    }
}

// === impl Http1 ===

impl Http1 {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Interrupted>>> {
        let polled = Pin::new(&mut self.incoming).poll_frame(cx).map_err(Interrupted::from);
        let has_ended = matches!(polled, Poll::Ready(None | Some(Err(_)))) || self.incoming.is_end_stream();
        self.tally.set(if has_ended { 0 } else { self.ahead.held() });
        polled
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use http::Response;
    use http_body_util::{BodyExt as _, Empty};
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use kit::wait::{WAIT, unless_quiet, within};
    use net::observed::{ActivityObserver, Observed};
    use tokio::io::{AsyncWriteExt as _, duplex};
    use tokio::sync::mpsc;

    use super::*;
    use crate::holding::{self, Budget};

    /// Notes what hyper has room for.
    struct Observer(ReadAhead);

    impl ActivityObserver for Observer {
        fn on_poll(&mut self, room: usize) {
            self.0.note(room);
        }

        fn on_read(&mut self, _bytes: &[u8]) {}
    }

    /// The bytes that hyper has read from a client that uploads without end.
    #[tokio::test]
    async fn what_nobody_takes_of_an_upload_counts_for_its_request() {
        const ROOM: usize = 64 << 10;
        let account = holding::open(&Budget::new(1 << 40), 0, [10, 0, 0, 1].into());
        let (before, (ours, mut theirs), ahead) = (account.held(), duplex(ROOM), ReadAhead::default());
        let (bodies, mut body) = mpsc::unbounded_channel();
        let (of, noted) = (account.clone(), ahead.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let _ = bodies.send(RequestBody::of_http1(request.into_body(), &noted, of.clone()));
            std::future::pending::<Result<Response<Empty<Bytes>>, Infallible>>()
        });
        let io = TokioIo::new(Observed::new(ours, Observer(ahead)));
        let server = tokio::spawn(http1::Builder::new().max_buf_size(1 << 20).serve_connection(io, service));
        let sent = tokio::spawn(async move {
            theirs.write_all(b"POST / HTTP/1.1\r\nContent-Length: 100000000\r\n\r\n").await.unwrap();
            let (mut sent, piece) = (0, vec![0; 4 << 10]);
            while unless_quiet(Duration::from_millis(200), theirs.write_all(&piece)).await.is_some() {
                sent += piece.len();
            }
            (sent, theirs)
        });
        let mut body = within(WAIT, "a request", body.recv()).await.unwrap();
        let mut taken = 0;
        while taken < 40 * ROOM {
            let frame = within(WAIT, "a frame", body.frame()).await.unwrap().unwrap();
            taken += frame.into_data().unwrap().len();
        }
        let (sent, theirs) = sent.await.unwrap();
        // The bytes in the pipe are not in hyper's memory.
        let waits = (sent - taken - ROOM.min(sent - taken)) as u64;
        let held = account.held() - before;
        assert!(waits > 0 && held >= waits, "{waits} bytes, and {held} are known");
        drop((body, theirs));
        server.abort();
        assert_eq!(account.held(), before);
    }
}
