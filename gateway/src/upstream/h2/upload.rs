//! Streams a request body into an HTTP/2 stream, no faster than the member reads.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};
use http::HeaderMap;
use hyper::body::Body;

use crate::headers;
use crate::headers::size;
use crate::holding::{self, Account, Uploading};
use crate::request_body::{Interrupted, RequestBody};

/// A request body in transit. Holds at most the one chunk that does not fit into the member's
/// window yet; the client's own window stops the client meanwhile.
pub struct Upload {
    body: RequestBody,
    stream: SendStream<Bytes>,
    /// The pieces that have not left.
    sent: Arc<Uploading>,
    waiting: Bytes,
    /// The waiting chunk has its own memory, or is too large to copy.
    is_apart: bool,
}

/// How an upload ended.
pub enum UploadEnd {
    Sent,
    /// The member does not want the rest; its response has the reason.
    Stopped,
    /// The member saw no end of the request.
    Interrupted(Interrupted),
}

// === impl Upload ===

impl Upload {
    /// `member` is the account of the connection.
    pub fn new(body: RequestBody, stream: SendStream<Bytes>, member: &Account) -> Self {
        Self { body, stream, sent: Uploading::to(member), waiting: Bytes::new(), is_apart: true }
    }

    /// Sends all that can be sent now.
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
                    // While waiting for the client, detect a reset by the member.
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
                    return Poll::Ready(UploadEnd::Interrupted(error));
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        // This call itself assigns capacity, if the window has any.
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
            return UploadEnd::Interrupted(Interrupted::Trailers(unfit));
        }
        if let Some(account) = self.body.account() {
            holding::hold_trailers(account, &mut trailers);
        }
        if self.stream.send_trailers(trailers).is_ok() { UploadEnd::Sent } else { UploadEnd::Stopped }
    }

    /// Releases the buffer of which the waiting chunk is a slice, because the chunk may wait for
    /// long.
    fn let_go(&mut self) {
        if !std::mem::replace(&mut self.is_apart, true)
            && let Some(account) = self.body.account()
        {
            self.waiting = holding::upload_apart(account, std::mem::take(&mut self.waiting));
        }
    }

    /// Sends the waiting chunk as the window opens. False if the member closed the stream.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        while !self.waiting.is_empty() {
            if self.sent.is_full(cx) {
                return Poll::Pending;
            }
            match ready!(self.stream.poll_capacity(cx)) {
                Some(Ok(granted)) => {
                    let chunk = self.waiting.split_to(granted.min(self.waiting.len()));
                    let part_of = if self.waiting.is_empty() { None } else { self.body.account() };
                    if self.stream.send_data(self.sent.send(chunk, part_of), false).is_err() {
                        return Poll::Ready(false);
                    }
                }
                Some(Err(_)) | None => return Poll::Ready(false),
            }
        }
        Poll::Ready(true)
    }
}
