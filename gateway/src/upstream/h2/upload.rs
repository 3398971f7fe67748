//! Streaming a client's request body into an HTTP/2 stream, no faster than the member reads.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};
use http::HeaderMap;
use hyper::body::Body;

use crate::headers;
use crate::headers::size::{self, Unfit};
use crate::holding;
use crate::request_body::{Interrupted, RequestBody};
use crate::upstream::Lost;

/// A request body on its way. Holds at most the one chunk that the member's window does not admit
/// yet; the client is held back by its own window meanwhile.
pub struct Upload {
    body: RequestBody,
    stream: SendStream<Bytes>,
    waiting: Bytes,
    /// What waits has memory of its own, or is not worth it.
    is_apart: bool,
}

/// How an upload ended.
pub enum UploadEnd {
    Sent,
    /// The member wants no more of it; its response says why.
    Stopped,
    ClientGone(Lost),
    /// The trailers cannot be sent: the member saw no end of the request.
    Unfit(Unfit),
}

// === impl Upload ===

impl Upload {
    pub fn new(body: RequestBody, stream: SendStream<Bytes>) -> Self {
        Self { body, stream, waiting: Bytes::new(), is_apart: true }
    }

    /// Moves what can be moved now.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<UploadEnd> {
        loop {
            match self.poll_send(cx) {
                Poll::Ready(true) => {}
                Poll::Ready(false) => return Poll::Ready(UploadEnd::Stopped),
                Poll::Pending => {
                    self.let_go();
                    return Poll::Pending;
                }
            }
            let frame = match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(frame) => frame,
                Poll::Pending => {
                    // While waiting for the client, notice a member that reset the stream.
                    return match self.stream.poll_reset(cx) {
                        Poll::Ready(_) => Poll::Ready(UploadEnd::Stopped),
                        Poll::Pending => Poll::Pending,
                    };
                }
            };
            match frame {
                None => {
                    let sent = self.stream.send_data(Bytes::new(), true);
                    return Poll::Ready(if sent.is_ok() { UploadEnd::Sent } else { UploadEnd::Stopped });
                }
                Some(Err(error)) => {
                    self.stream.send_reset(Reason::CANCEL);
                    return Poll::Ready(match error {
                        Interrupted::Trailers(unfit) => UploadEnd::Unfit(unfit),
                        Interrupted::Http1(gone) => UploadEnd::ClientGone(gone.into()),
                        Interrupted::Http2(gone) => UploadEnd::ClientGone(gone.into()),
                    });
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        // Asking for room is what assigns it, if the window has any.
                        self.stream.reserve_capacity(data.len());
                        if self.body.is_end_stream() && self.stream.capacity() >= data.len() {
                            // The usual small body: data and end in one frame.
                            let sent = self.stream.send_data(data, true);
                            return Poll::Ready(if sent.is_ok() { UploadEnd::Sent } else { UploadEnd::Stopped });
                        }
                        self.waiting = data;
                        self.is_apart = false;
                    }
                    Err(frame) => {
                        let Ok(trailers) = frame.into_trailers() else { continue };
                        return Poll::Ready(self.end(trailers));
                    }
                },
            }
        }
    }

    fn end(&mut self, mut trailers: HeaderMap) -> UploadEnd {
        headers::trailers_to_member(&mut trailers);
        if let Err(unfit) = size::of_trailers(&trailers) {
            self.stream.send_reset(Reason::CANCEL);
            return UploadEnd::Unfit(unfit);
        }
        if let Some(account) = self.body.account() {
            holding::hold_trailers(account, &mut trailers);
        }
        if self.stream.send_trailers(trailers).is_ok() { UploadEnd::Sent } else { UploadEnd::Stopped }
    }

    /// Of the buffer that the chunk is part of: it may wait for long.
    fn let_go(&mut self) {
        if !std::mem::replace(&mut self.is_apart, true)
            && let Some(account) = self.body.account()
        {
            self.waiting = holding::apart(account, std::mem::take(&mut self.waiting));
        }
    }

    /// Sends the waiting chunk as the window opens. False if the member closed the stream.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        while !self.waiting.is_empty() {
            match ready!(self.stream.poll_capacity(cx)) {
                Some(Ok(granted)) => {
                    let chunk = self.waiting.split_to(granted.min(self.waiting.len()));
                    if self.stream.send_data(chunk, false).is_err() {
                        return Poll::Ready(false);
                    }
                }
                Some(Err(_)) | None => return Poll::Ready(false),
            }
        }
        Poll::Ready(true)
    }
}
