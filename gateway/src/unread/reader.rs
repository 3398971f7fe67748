//! The reading end of a body that arrives piece by piece.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use h2::RecvStream;
use http::HeaderMap;
use parking_lot::Mutex;

use super::collector::Collector;
use super::{SHORT, Unread, UnreadBody};
use crate::holding::Account;

/// Size at which joining stops.
const JOINED: usize = 16 * 1024;
/// Shorter pieces for a stalled reader are copied, here or by the [`Queue`](net::queue::Queue).
pub(super) const COPIED: usize = 16 * 1024;

/// The reading end of an [`Unread`].
pub struct Reader {
    pub(super) unread: Arc<Unread>,
    /// The same, as a waker.
    waker: Waker,
}

// === impl Reader ===

impl Reader {
    /// `first` has been taken from the stream already.
    pub(super) fn new(stream: RecvStream, first: Bytes, collector: &Arc<Collector>, account: Option<Account>) -> Self {
        let mut kept = UnreadBody { stream, queue: None, trailers: None, account, window_due: 0 };
        kept.put(first);
        let unread = Arc::new(Unread {
            kept: Mutex::new(Some(kept)),
            armed: AtomicBool::new(false),
            reader: AtomicWaker::new(),
            collector: Arc::clone(collector),
        });
        collector.list(Arc::clone(&unread));
        Self { waker: Waker::from(Arc::clone(&unread)), unread }
    }

    pub(super) fn poll_data(&self, cx: &Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
        let mut kept = self.unread.kept.lock();
        let Some(kept) = &mut *kept else { return Poll::Ready(None) };
        let polled = match kept.pop() {
            Some(piece) => Poll::Ready(Some(Ok(piece))),
            None => self.poll_frames(kept),
        };
        if let Poll::Ready(Some(Ok(piece))) = &polled {
            kept.was_read(piece.len());
        }
        self.register(cx, &polled);
        polled
    }

    /// Returns the next frame. If it is short, joins the following ones, so that its reader gets
    /// fewer pieces.
    fn poll_frames(&self, kept: &mut UnreadBody) -> Poll<Option<Result<Bytes, h2::Error>>> {
        let poll = |kept: &mut UnreadBody| self.unread.arm(&self.waker, &mut kept.stream, RecvStream::poll_data);
        let first = match poll(kept) {
            Poll::Ready(Some(Ok(first))) if first.len() < SHORT => first,
            polled => return polled,
        };
        let mut next = poll(kept);
        if !matches!(next, Poll::Ready(Some(Ok(_)))) {
            return Poll::Ready(Some(Ok(first)));
        }
        kept.put(first);
        while let Poll::Ready(Some(Ok(piece))) = next {
            kept.put(piece);
            next = if kept.held() < JOINED { poll(kept) } else { Poll::Pending };
        }
        Poll::Ready(Some(Ok(kept.pop().unwrap_or_default())))
    }

    pub(super) fn poll_trailers(&self, cx: &Context<'_>) -> Poll<Result<Option<HeaderMap>, h2::Error>> {
        let mut kept = self.unread.kept.lock();
        let Some(kept) = &mut *kept else { return Poll::Ready(Ok(None)) };
        if let Some(trailers) = kept.take_trailers() {
            return Poll::Ready(Ok(Some(trailers)));
        }
        let polled = self.unread.arm(&self.waker, &mut kept.stream, RecvStream::poll_trailers);
        self.register(cx, &polled);
        polled
    }

    /// Called under the stream's lock, so that no data are collected before the reader is
    /// registered.
    fn register<T>(&self, cx: &Context<'_>, polled: &Poll<T>) {
        if polled.is_pending() {
            self.unread.reader.register(cx.waker());
            if !self.unread.armed.load(Ordering::Acquire) {
                // Woken before the reader was registered.
                cx.waker().wake_by_ref();
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Resets the stream if it has not ended. Neither under the lock nor left to the last waker,
        // because h2 drops wakers under its own lock.
        let kept = self.unread.kept.lock().take();
        drop(kept);
    }
}
