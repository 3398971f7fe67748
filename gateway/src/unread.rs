//! Bodies without a reader: answers whose client has stalled, uploads whose member has.
//!
//! h2 keeps what is unread frame by frame, some 250 bytes for one of a single byte, and ends the
//! *connection*, which is everybody's, of a peer that lets many short ones lie. So what still lies
//! there when a turn of the connection begins (one poll of it, after which its readers run) is
//! taken off h2 and joined. Its window is not given back before it is read: a stream holds a window
//! at most.
//!
//! Every stream is *armed*, which means that h2 has found nothing and wakes its waker for what
//! comes next, or it is on the list of its connection's [`Collector`], or it has ended. So watches
//! without events cost nothing, and one whose reader keeps up costs a look.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use h2::RecvStream;
use http::HeaderMap;
use net::queue::Queue;
use parking_lot::Mutex;

use crate::holding::{self, Account};

/// Where a body is read from.
pub enum Source {
    /// It has arrived, in one frame.
    Whole {
        stream: RecvStream,
        data: Option<Bytes>,
    },
    Long(Reader),
}

/// Frames of fewer bytes are joined with what lies behind them,
const SHORT: usize = 256;
/// until the piece has so many.
const JOINED: usize = 16 * 1024;
/// What h2 may have when a turn ends without another that follows at once: bytes of frames. Short
/// ones cost it some 250 each, and a client or a member chooses how many.
const MOST_LEFT: usize = 256 * 1024;
/// So that 64 of them are too many.
const SHORT_COUNTS: usize = 4096;
/// Shorter pieces of a reader that has stalled are copied, here or by the [`Queue`].
const COPIED: usize = 16 * 1024;

/// The reading end of an [`Unread`].
pub struct Reader {
    unread: Arc<Unread>,
    /// The same as a waker.
    waker: Waker,
}

/// A stream and what was taken off it, shared by its reader and the driver of its connection.
pub struct Unread {
    /// `None` once the reader has left: h2 keeps the waker for longer.
    kept: Mutex<Option<UnreadBody>>,
    armed: AtomicBool,
    reader: AtomicWaker,
    collector: Arc<Collector>,
}

struct UnreadBody {
    stream: RecvStream,
    queue: Queue,
    /// What ended it, unless h2 has that still.
    trailers: Option<HeaderMap>,
    /// Of the request that the stream is of: has what is in the queue, and the trailers.
    account: Option<Account>,
}

/// The streams of a connection that may have something unread.
pub struct Collector {
    /// `None` when no driver attends any more.
    listed: Mutex<Option<Vec<Arc<Unread>>>>,
    /// Of the frames of this turn, see [`MOST_LEFT`].
    left: AtomicUsize,
    /// Turns of the connection so far.
    turns: AtomicUsize,
}

/// Drives a connection, and before each turn takes what its readers have left since the last.
pub struct Collecting<D> {
    driver: D,
    collector: Arc<Collector>,
    /// Empty between turns; its room is used again.
    due: Vec<Arc<Unread>>,
}

// === impl Source ===

impl Source {
    /// Of a stream whose head was just taken. What waits to be read counts for the `account`; what
    /// came whole is to be read at once.
    pub fn new(mut stream: RecvStream, collector: &Arc<Collector>, account: Option<&Account>) -> Self {
        if stream.is_end_stream() {
            return Self::Whole { stream, data: None };
        }
        // Most bodies are short and come with their heads.
        let first = match stream.poll_data(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(Ok(data))) if stream.is_end_stream() => return Self::Whole { stream, data: Some(data) },
            Poll::Ready(Some(Ok(data))) => data,
            // Any other end, h2 reports again.
            _ => Bytes::new(),
        };
        Self::Long(Reader::new(stream, first, collector, account.cloned()))
    }

    /// The next piece. Its window is given back: that of its reader holds it from here.
    pub fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
        match self {
            Self::Whole { stream, data } => {
                let data = data.take();
                if let Some(data) = &data {
                    release(stream, data);
                }
                Poll::Ready(data.map(Ok))
            }
            Self::Long(reader) => reader.poll_data(cx),
        }
    }

    /// What came whole will be read late: it counts for `account` until it is let go of.
    pub fn keep_for(&mut self, account: &Account) {
        if let Self::Whole { data: Some(data), .. } = self {
            *data = account.charge(std::mem::take(data));
        }
    }

    /// To be called after the last piece.
    pub fn poll_trailers(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<HeaderMap>, h2::Error>> {
        match self {
            Self::Whole { stream, .. } => stream.poll_trailers(cx),
            Self::Long(reader) => reader.poll_trailers(cx),
        }
    }

    /// The peer has ended it, and all of it was read.
    pub fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole { data, .. } => data.is_none(),
            Self::Long(reader) => {
                let kept = reader.unread.kept.lock();
                kept.as_ref().is_none_or(|kept| kept.is_empty() && kept.stream.is_end_stream())
            }
        }
    }
}

/// Fails only for more than was received, and for a stream that has ended there is nothing to give
/// back.
fn release(stream: &mut RecvStream, data: &Bytes) {
    let _ = stream.flow_control().release_capacity(data.len());
}

// === impl Reader ===

impl Reader {
    /// `first` was taken off the stream already.
    fn new(stream: RecvStream, first: Bytes, collector: &Arc<Collector>, account: Option<Account>) -> Self {
        let mut kept = UnreadBody { stream, queue: Queue::default(), trailers: None, account };
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

    fn poll_data(&self, cx: &Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
        let mut kept = self.unread.kept.lock();
        let Some(kept) = &mut *kept else { return Poll::Ready(None) };
        let polled = match kept.pop() {
            Some(piece) => Poll::Ready(Some(Ok(piece))),
            None => self.poll_frames(kept),
        };
        if let Poll::Ready(Some(Ok(piece))) = &polled {
            release(&mut kept.stream, piece);
        }
        self.register(cx, &polled);
        polled
    }

    /// The next frame, and if that is short what lies behind it too: its reader gets fewer.
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
            next = if kept.queue.held() < JOINED { poll(kept) } else { Poll::Pending };
        }
        Poll::Ready(Some(Ok(kept.pop().unwrap_or_default())))
    }

    fn poll_trailers(&self, cx: &Context<'_>) -> Poll<Result<Option<HeaderMap>, h2::Error>> {
        let mut kept = self.unread.kept.lock();
        let Some(kept) = &mut *kept else { return Poll::Ready(Ok(None)) };
        if let Some(trailers) = kept.take_trailers() {
            return Poll::Ready(Ok(Some(trailers)));
        }
        let polled = self.unread.arm(&self.waker, &mut kept.stream, RecvStream::poll_trailers);
        self.register(cx, &polled);
        polled
    }

    /// Under the stream's lock: nothing takes what comes before the reader is known.
    fn register<T>(&self, cx: &Context<'_>, polled: &Poll<T>) {
        if polled.is_pending() {
            self.unread.reader.register(cx.waker());
            if !self.unread.armed.load(Ordering::Acquire) {
                // Rung before the reader was known.
                cx.waker().wake_by_ref();
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Resets the stream if it has not ended. Not under the lock, and never left to the last
        // waker: h2 drops those under its own.
        let kept = self.unread.kept.lock().take();
        drop(kept);
    }
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
        self.queue.push(piece);
    }

    fn pop(&mut self) -> Option<Bytes> {
        let piece = self.queue.pop(usize::MAX)?;
        if let Some(account) = &self.account {
            account.give(piece.len());
        }
        Some(piece)
    }

    fn put_trailers(&mut self, trailers: HeaderMap) {
        if let Some(account) = &self.account {
            account.take(holding::size(&trailers));
        }
        self.trailers = Some(trailers);
    }

    fn take_trailers(&mut self) -> Option<HeaderMap> {
        let trailers = self.trailers.take()?;
        if let Some(account) = &self.account {
            account.give(holding::size(&trailers));
        }
        Some(trailers)
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.trailers.is_none()
    }
}

impl Drop for UnreadBody {
    fn drop(&mut self) {
        drop(self.take_trailers());
        if let Some(account) = &self.account {
            account.give(self.queue.held());
        }
    }
}

// === impl Unread ===

impl Unread {
    /// Polls h2 with the waker. Under the stream's lock: in mid-poll it looks armed and may turn
    /// out not to be.
    fn arm<T>(
        &self,
        waker: &Waker,
        stream: &mut RecvStream,
        poll: impl FnOnce(&mut RecvStream, &mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        // Before the poll: the waker may be woken as soon as h2 has it.
        self.armed.store(true, Ordering::Release);
        let polled = poll(stream, &mut Context::from_waker(waker));
        if polled.is_ready() {
            self.armed.store(false, Ordering::Release);
        }
        polled
    }

    /// Takes what there is, unless the reader has found that there is nothing. What ended the
    /// stream, if something did, h2 says again to the reader; but for trailers, which may be large.
    fn collect(self: Arc<Self>) {
        let waker = Waker::from(Arc::clone(&self));
        let mut kept = self.kept.lock();
        let Some(kept) = &mut *kept else { return };
        if self.armed.load(Ordering::Acquire) {
            return;
        }
        let end = loop {
            let polled = self.arm(&waker, &mut kept.stream, RecvStream::poll_data);
            let Poll::Ready(Some(Ok(data))) = polled else { break polled };
            // A slice would keep the buffer that the connection was read into, with what came
            // beside it.
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

/// Rung by h2 under its lock, where nothing can be taken.
impl Wake for Unread {
    fn wake(self: Arc<Self>) {
        self.armed.store(false, Ordering::Release);
        self.collector.list(Arc::clone(&self));
        self.reader.wake();
    }
}

// === impl Collector ===

impl Collector {
    /// A frame with so many bytes for a stream is about to be h2's.
    pub fn frame(&self, bytes: usize) {
        self.left.fetch_add(if bytes < SHORT { SHORT_COUNTS } else { bytes }, Ordering::Relaxed);
    }

    /// The number of this turn. What the connection hands on in the middle of one is not taken up
    /// before its end.
    pub fn turn(&self) -> usize {
        self.turns.load(Ordering::Relaxed)
    }

    pub fn begin_turn(&self) {
        self.left.store(0, Ordering::Relaxed);
        // The connection's task alone writes.
        self.turns.store(self.turn().wrapping_add(1), Ordering::Relaxed);
    }

    fn list(&self, unread: Arc<Unread>) {
        if let Some(listed) = &mut *self.listed.lock() {
            listed.push(unread);
        }
    }
}

impl Default for Collector {
    fn default() -> Self {
        Self { listed: Mutex::new(Some(Vec::new())), left: AtomicUsize::new(0), turns: AtomicUsize::new(0) }
    }
}

// === impl Collecting ===

impl<D> Collecting<D> {
    pub fn new(driver: D, collector: Arc<Collector>) -> Self {
        Self { driver, collector, due: Vec::new() }
    }

    /// The driver, between two turns.
    pub fn driver(&mut self) -> &mut D {
        &mut self.driver
    }
}

impl<D: Future + Unpin> Future for Collecting<D> {
    type Output = D::Output;

    /// Readers that the last turn woke have read from h2 since; only what they left is queued.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<D::Output> {
        let this = &mut *self;
        // Not under the lock: h2 rings under its own.
        if let Some(listed) = &mut *this.collector.listed.lock() {
            std::mem::swap(listed, &mut this.due);
        }
        this.due.drain(..).for_each(Unread::collect);
        this.collector.begin_turn();
        let polled = Pin::new(&mut this.driver).poll(cx);
        if polled.is_pending() && this.collector.left.load(Ordering::Relaxed) > MOST_LEFT {
            // After the readers, which were woken before. Without it h2 would have what they leave
            // until something else comes.
            cx.waker().wake_by_ref();
        }
        polled
    }
}

impl<D> Drop for Collecting<D> {
    fn drop(&mut self) {
        // The listed streams hold the collector that holds them.
        let listed = self.collector.listed.lock().take();
        drop(listed);
    }
}

#[cfg(test)]
mod tests;
