//! Sends the body of a response.

use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};
use hyper::body::Body;

use super::ASKED_FIRST;
use crate::holding::{self, Account};
use crate::record::RecordedBody;

/// A response body in transit. Holds at most the one piece for which the client has no room yet.
pub(super) struct Sending {
    pub(super) body: RecordedBody,
    pub(super) stream: SendStream<Bytes>,
    /// The piece, and whether it is the last.
    pub(super) waiting: Option<(Bytes, bool)>,
    /// The piece has its own memory, or is too large to copy.
    pub(super) is_apart: bool,
    pub(super) account: Account,
    /// The response itself reports that the request held too much.
    pub(super) is_told: bool,
    /// Whether the stream may still have the waker that the last poll left there.
    pub(super) has_waker: bool,
}

// === impl Sending ===

impl Drop for Sending {
    fn drop(&mut self) {
        self.account.holder().end_with_connection();
    }
}

impl Sending {
    /// Completes when all is sent, or nothing more can be sent.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_told && self.account.check(cx).is_err() {
            self.stream.send_reset(Reason::ENHANCE_YOUR_CALM);
            return Poll::Ready(());
        }
        self.has_waker = true;
        loop {
            if self.account.holder().has_many_pieces(cx) {
                self.let_go();
                return self.stream.poll_reset(cx).map(drop);
            }
            let room = match self.poll_room(cx) {
                Poll::Ready(Some(room)) => room,
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => {
                    self.let_go();
                    return Poll::Pending;
                }
            };
            if let Some((data, last)) = self.waiting.take() {
                let (data, rest) = self.within_window(data, room);
                let last_now = last && rest.is_empty();
                if self.stream.send_data(data, last_now).is_err() || last_now {
                    return Poll::Ready(());
                }
                if !rest.is_empty() {
                    self.stream.reserve_capacity(rest.len().min(ASKED_FIRST));
                    self.waiting = Some((rest, last));
                    self.is_apart = false;
                    continue;
                }
            }
            let frame = match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(frame) => frame,
                // Only this poll shows that the client has reset the stream.
                Poll::Pending => return self.stream.poll_reset(cx).map(drop),
            };
            match frame {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.put(data),
                    Err(frame) => {
                        if let Ok(mut trailers) = frame.into_trailers() {
                            holding::hold_trailers(&self.account, &mut trailers);
                            let _ = self.stream.send_trailers(trailers);
                            return Poll::Ready(());
                        }
                    }
                },
                Some(Err(_)) => {
                    self.stream.send_reset(Reason::INTERNAL_ERROR);
                    return Poll::Ready(());
                }
                None => {
                    let _ = self.stream.send_data(Bytes::new(), true);
                    return Poll::Ready(());
                }
            }
        }
    }

    fn put(&mut self, data: Bytes) {
        // Looking for the end takes the connection's lock. The end of a watch comes by itself, long
        // after its events.
        let may_be_last = data.is_empty() || !self.body.is_stream();
        let last = may_be_last && self.body.is_end_stream();
        if data.is_empty() {
            self.waiting = Some((data, last));
            return;
        }
        // The task ends with the last piece, woken or not.
        if !last {
            self.take_waker();
        }
        // To ask for all at once would make every waiting stream claim its whole length of the
        // connection's window.
        self.stream.reserve_capacity(data.len().min(ASKED_FIRST));
        self.waiting = Some((holding::hold_piece(&self.account, data), last));
        self.is_apart = false;
    }

    /// Takes the task's waker from the stream. Otherwise the room that
    /// [`reserve_capacity`](SendStream::reserve_capacity) finds would wake the task that asks for
    /// it, and each event of a watch would cost two polls (`notify_capacity` in
    /// `proto/streams/stream.rs` of h2 0.4.20). Whatever the task then waits for leaves its waker
    /// there again.
    fn take_waker(&mut self) {
        if std::mem::take(&mut self.has_waker) {
            // That it was reset is found by whatever follows.
            let _ = self.stream.poll_reset(&mut Context::from_waker(Waker::noop()));
        }
    }

    /// Releases the buffer of which the piece is a slice, because the piece may wait for long.
    fn let_go(&mut self) {
        if !std::mem::replace(&mut self.is_apart, true)
            && let Some((data, _)) = &mut self.waiting
        {
            *data = holding::apart(&self.account, std::mem::take(data));
        }
    }

    /// Splits off the part that fits into the client's window, of which the stream has `room`
    /// bytes. All that h2 holds is then within the window, and leaves as soon as the client's
    /// socket takes it: no bytes of a response are left in h2 after its task has ended.
    fn within_window(&mut self, mut data: Bytes, mut room: usize) -> (Bytes, Bytes) {
        if data.is_empty() {
            return (data, Bytes::new());
        }
        if room < data.len() {
            self.stream.reserve_capacity(data.len());
            room = self.stream.capacity();
        }
        let now = data.split_to(room.min(data.len()));
        let now = if data.is_empty() { now } else { holding::hold_part(&self.account, now) };
        (now, data)
    }

    /// Waits for room for the waiting piece, and returns how much there is, by one look: each takes
    /// the connection's lock. Nothing, or an empty piece, needs none. `None` if the client has
    /// reset the stream.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Option<usize>> {
        let needs_room = self.waiting.as_ref().is_some_and(|(data, _)| !data.is_empty());
        if !needs_room {
            return Poll::Ready(Some(0));
        }
        loop {
            let room = self.stream.capacity();
            if room > 0 {
                return Poll::Ready(Some(room));
            }
            match ready!(self.stream.poll_capacity(cx)) {
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Poll::Ready(None),
            }
        }
    }
}
