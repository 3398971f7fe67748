//! One byte stream of a link, with half-close and reset.

mod inbound;
mod transfer;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream};
use net::permit::Permit;
use net::queue::Queue;
use tokio_util::sync::CancellationToken;

use self::inbound::Inbound;
pub(crate) use self::inbound::{UnattendedStreams, take};
use self::transfer::{lost, was_reset};
use crate::Timing;
use crate::leaving::Notice;

/// A byte stream. `END_STREAM` is end of file, and `shutdown` sends it; a reset by the peer or the
/// loss of the link is [`io::ErrorKind::ConnectionReset`] in both directions. Dropping it before
/// both directions have ended resets it (`RST_STREAM` CANCEL), so that the far end sees a reset and
/// never a clean end.
///
/// A peer that has sent its `END_STREAM` and then `RST_STREAM(NO_ERROR)` has closed cleanly and
/// reads no more: its data can be read to the end, and writing is [`io::ErrorKind::BrokenPipe`].
#[derive(Debug)]
pub struct Stream {
    send: SendStream<Bytes>,
    inbound: Arc<Inbound>,
    /// Room that was requested and not used.
    wanted: usize,
    sent_end: bool,
    reset: bool,
    /// Absent at the end that accepted the stream.
    notice: Option<Notice>,
    /// Likewise.
    timing: Timing,
    _open: Open,
}

/// Observes the bytes that a stream holds in this process. Called on the thread that moves the
/// link's frames, or that uses or drops the stream.
pub trait HeldObserver: fmt::Debug + Send + Sync {
    /// Gets the number of unread bytes, in steps, so that it costs next to nothing: less than
    /// 64 KiB counts as nothing.
    fn unread(&self, bytes: usize);

    /// Returns the same bytes. HTTP/2 drops them when they are sent, or when the stream has ended.
    fn unsent(&self, data: Bytes) -> Bytes;
}

/// Counts a stream for as long as it is open or being opened.
pub(crate) type Open = Permit<AtomicUsize>;

// === impl Stream ===

impl Stream {
    /// `unread` was already [taken](take) off `recv`.
    pub(crate) fn new(send: SendStream<Bytes>, recv: RecvStream, unread: Queue, open: Open) -> Self {
        Self {
            send,
            inbound: Inbound::new(recv, unread),
            wanted: 0,
            sent_end: false,
            reset: false,
            notice: None,
            timing: Timing::default(),
            _open: open,
        }
    }

    /// Lets the link's driver take data off HTTP/2 while the stream, read as
    /// [`AsyncRead`](tokio::io::AsyncRead), is not being read.
    pub(crate) fn attended_by(self, unattended: &Arc<UnattendedStreams>) -> Self {
        self.inbound.attended_by(Arc::clone(unattended));
        self
    }

    /// `observer` gets the number of unread bytes and what waits to be sent from here on, while the
    /// stream is used as [`AsyncRead`](tokio::io::AsyncRead) and
    /// [`AsyncWrite`](tokio::io::AsyncWrite). Only for the end that opened the stream: there the
    /// link's driver takes what stays unread.
    #[must_use]
    pub fn observed_by(self, observer: Arc<dyn HeldObserver>) -> Self {
        self.inbound.observed_by(observer);
        self
    }

    pub(crate) fn noticed_by(mut self, notice: Notice) -> Self {
        self.notice = Some(notice);
        self
    }

    pub(crate) fn timed(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }

    /// How long the hops behind the link took to open it, as they reported it: nothing at the end
    /// that accepted the stream, and from older peers.
    pub fn timing(&self) -> Timing {
        self.timing
    }

    /// Cancelled when the stream's link, or one further on, no longer takes new streams. This
    /// stream goes on for a while, but a client that sends requests of its own inside should start
    /// new ones elsewhere. `None` at the end that accepted the stream.
    pub fn leaving(&self) -> Option<CancellationToken> {
        self.notice.as_ref().map(|notice| notice.token().clone())
    }

    /// The next piece as it came off the wire, `None` at the end. [`Stream::release`] gives its
    /// window back.
    pub fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        self.inbound.lock().poll_data(cx)
    }

    /// Lets the peer send `bytes` more.
    pub fn release(&mut self, bytes: usize) {
        self.inbound.lock().release(bytes);
    }

    /// How many bytes may be sent now, up to `want`; waits until it is at least one. If the peer's
    /// connection window is small, requested room is taken from the link's other streams: ask only
    /// with the bytes in hand.
    pub fn poll_room(&mut self, cx: &mut Context<'_>, want: usize) -> Poll<io::Result<usize>> {
        if self.sent_end {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if self.wanted != want {
            self.send.reserve_capacity(want);
            self.wanted = want;
        }
        loop {
            let room = self.send.capacity();
            if room > 0 {
                return Poll::Ready(Ok(room.min(want)));
            }
            match ready!(self.send.poll_capacity(cx)) {
                // Check again: the increase may have been used already.
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(lost(&error))),
                None => return Poll::Ready(Err(self.why_closed(cx))),
            }
        }
    }

    /// Sends `data` without copying: at most as much as [`Stream::poll_room`] returned.
    pub fn send(&mut self, data: Bytes) -> io::Result<()> {
        self.wanted = self.wanted.saturating_sub(data.len());
        self.send.send_data(data, false).map_err(|_| self.why_closed(&mut Context::from_waker(Waker::noop())))
    }

    /// Gives back the room that was requested and not used. Call it when there is nothing more to
    /// send for now.
    pub fn settle(&mut self) {
        if self.wanted > 0 {
            self.wanted = 0;
            self.send.reserve_capacity(0);
        }
    }

    /// Sends `END_STREAM`: nothing more will be sent.
    pub fn finish(&mut self) -> io::Result<()> {
        if self.sent_end {
            return Ok(());
        }
        let sent = self.send.send_data(Bytes::new(), true);
        self.sent_end = sent.is_ok();
        sent.map_err(|_| self.why_closed(&mut Context::from_waker(Waker::noop())))
    }

    /// Sends `RST_STREAM`: both directions end at once.
    pub fn reset(&mut self) {
        if !self.reset {
            self.reset = true;
            self.send.send_reset(Reason::CANCEL);
        }
    }

    /// Ready when the peer has reset the stream or the link is lost: for a task that neither reads
    /// nor writes just now. h2 wakes one task for this and for [`Stream::poll_room`], so the same
    /// task must poll both.
    pub fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        match ready!(self.send.poll_reset(cx)) {
            Ok(Reason::NO_ERROR) => Poll::Ready(io::ErrorKind::BrokenPipe.into()),
            Ok(reason) => Poll::Ready(was_reset(reason)),
            Err(error) => Poll::Ready(lost(&error)),
        }
    }

    /// Whether the peer takes no more of what is sent: for a task as with [`Stream::poll_reset`],
    /// which is then woken once more. An error: the stream is lost.
    pub fn takes_no_more(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        match self.poll_reset(cx) {
            Poll::Ready(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                cx.waker().wake_by_ref();
                Ok(true)
            }
            Poll::Ready(error) => Err(error),
            Poll::Pending => Ok(false),
        }
    }

    /// Of a stream that is closed: nothing will be woken.
    fn why_closed(&mut self, cx: &mut Context<'_>) -> io::Error {
        match self.poll_reset(cx) {
            Poll::Ready(error) => error,
            Poll::Pending => io::ErrorKind::BrokenPipe.into(),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // h2 would choose NO_ERROR for a server's stream that has sent its end, which the peer
        // reads as a clean end.
        let ended = self.sent_end && self.inbound.lock().is_read();
        if !ended {
            self.reset();
        }
    }
}

#[cfg(test)]
mod tests;
