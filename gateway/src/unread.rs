//! Takes unread bodies out of h2: responses whose client has stalled, and uploads whose member has.
//!
//! h2 keeps unread data frame by frame, some 250 bytes for a frame of one byte, and ends a
//! *connection* on which many short frames wait, although its callers share it. So the frames that
//! still wait when a turn of the connection begins (one poll of it, after which its readers run)
//! are taken from h2 and joined. Their window is given back only when they are read, so a stream
//! holds at most one window.
//!
//! Every stream is in one of three states. It is *armed*: h2 has found nothing, and wakes its waker
//! for the next frame. Or it is on the list of its connection's [`Collector`]. Or it has ended. So
//! watches without events cost nothing, and one whose reader keeps up costs one check.

mod collector;
mod reader;
mod source;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use h2::RecvStream;
use http::HeaderMap;
use net::queue::Queue;
use parking_lot::Mutex;

use self::reader::COPIED;
use crate::holding::{self, Account};

pub use self::collector::{Collecting, Collector};
pub use self::reader::Reader;
pub use self::source::Source;

/// Frames with fewer bytes are joined with the following ones.
const SHORT: usize = 256;
/// Most bytes of frames that h2 may keep when a turn ends, unless another turn follows at once.
/// Short frames cost it some 250 bytes each, and the client or member chooses their number.
const MOST_LEFT: usize = 256 * 1024;
/// What a short frame counts, so that more than 64 of them are too many.
const SHORT_COUNTS: usize = 4096;
/// Bytes of window that are given back at once: each time takes the connection's lock. Far less
/// than the half of a window that h2 gathers before it tells the peer.
const WINDOW_STEP: usize = 8 * 1024;

/// A stream and the data taken from it, shared by its reader and the driver of its connection.
pub struct Unread {
    /// `None` once the reader has left: h2 keeps the waker for longer.
    kept: Mutex<Option<UnreadBody>>,
    armed: AtomicBool,
    reader: AtomicWaker,
    collector: Arc<Collector>,
}

/// What an [`Unread`] keeps until its reader leaves. Thousands of idle watches have one. Few have
/// data or trailers that wait, so these are boxed.
struct UnreadBody {
    stream: RecvStream,
    /// `None` while nothing waits.
    queue: Option<Box<Queue>>,
    /// The trailers that ended it, unless h2 still has them.
    trailers: Option<Box<HeaderMap>>,
    /// The account of the stream's request: counts the queue and the trailers.
    account: Option<Account>,
    /// Bytes that were read, and whose window was not given back yet.
    window_due: usize,
}

/// Gives back the window of so many bytes. Fails only for more than were received, and a stream
/// that has ended has no window to give back.
fn release(stream: &mut RecvStream, bytes: usize) {
    let _ = stream.flow_control().release_capacity(bytes);
}

// === impl UnreadBody ===

impl UnreadBody {
    fn put(&mut self, piece: Bytes) {
        if piece.is_empty() {
            return;
        }
        if let Some(account) = &self.account {
            account.take(piece.len());
        }
        self.queue.get_or_insert_default().push(piece);
    }

    fn pop(&mut self) -> Option<Bytes> {
        let queue = self.queue.as_mut()?;
        let piece = queue.pop(usize::MAX)?;
        if queue.is_empty() {
            self.queue = None;
        }
        if let Some(account) = &self.account {
            account.give(piece.len());
        }
        Some(piece)
    }

    /// Gives back the window of a piece that its reader gets, in steps.
    fn was_read(&mut self, bytes: usize) {
        self.window_due += bytes;
        if self.window_due >= WINDOW_STEP {
            release(&mut self.stream, std::mem::take(&mut self.window_due));
        }
    }

    fn put_trailers(&mut self, trailers: HeaderMap) {
        if let Some(account) = &self.account {
            account.take(holding::size(&trailers));
        }
        self.trailers = Some(Box::new(trailers));
    }

    fn take_trailers(&mut self) -> Option<HeaderMap> {
        let trailers = self.trailers.take()?;
        if let Some(account) = &self.account {
            account.give(holding::size(&trailers));
        }
        Some(*trailers)
    }

    fn held(&self) -> usize {
        self.queue.as_ref().map_or(0, |queue| queue.held())
    }

    fn is_empty(&self) -> bool {
        self.queue.is_none() && self.trailers.is_none()
    }
}

impl Drop for UnreadBody {
    fn drop(&mut self) {
        drop(self.take_trailers());
        if let Some(account) = &self.account {
            account.give(self.held());
        }
    }
}

// === impl Unread ===

impl Unread {
    /// Polls h2 with the waker. Called under the stream's lock, because during the poll the stream
    /// looks armed, and may turn out not to be.
    fn arm<T>(
        &self,
        waker: &Waker,
        stream: &mut RecvStream,
        poll: impl FnOnce(&mut RecvStream, &mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        // Before the poll: h2 may wake the waker as soon as it has it.
        self.armed.store(true, Ordering::Release);
        let polled = poll(stream, &mut Context::from_waker(waker));
        if polled.is_ready() {
            self.armed.store(false, Ordering::Release);
        }
        polled
    }

    /// Takes all data, unless the reader has found that there are none. h2 reports the end of the
    /// stream again to the reader, except for trailers, which are taken too because they may be
    /// large.
    fn collect(self: Arc<Self>) {
        let mut kept = self.kept.lock();
        let Some(kept) = &mut *kept else { return };
        if self.armed.load(Ordering::Acquire) {
            return;
        }
        let waker = Waker::from(Arc::clone(&self));
        let end = loop {
            let polled = self.arm(&waker, &mut kept.stream, RecvStream::poll_data);
            let Poll::Ready(Some(Ok(data))) = polled else { break polled };
            // A slice would keep the whole buffer into which the connection was read.
            let pins = (Queue::SMALL..COPIED).contains(&data.len());
            kept.put(if pins { Bytes::copy_from_slice(&data) } else { data });
        };
        if matches!(end, Poll::Ready(None))
            && let Poll::Ready(Ok(Some(trailers))) = self.arm(&waker, &mut kept.stream, RecvStream::poll_trailers)
        {
            kept.put_trailers(trailers);
        }
    }
}

/// h2 wakes it under its own lock, where no data can be taken.
impl Wake for Unread {
    fn wake(self: Arc<Self>) {
        self.armed.store(false, Ordering::Release);
        self.collector.list(Arc::clone(&self));
        self.reader.wake();
    }
}

#[cfg(test)]
mod tests;
