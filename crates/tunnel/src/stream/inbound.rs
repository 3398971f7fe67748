//! What a stream's peer has sent and its reader has not read yet.
//!
//! In HTTP/2 a frame of one byte takes 250, and h2 ends a link with many of them. Here they are
//! joined. A read or a write takes along what has come; for a stream without either, because its
//! client has stalled, the link's driver does.

use std::io;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker, ready};

use bytes::Bytes;
use h2::RecvStream;
use net::queue::Queue;
use parking_lot::{Mutex, MutexGuard};

use super::{UnreadObserver, lost};
use crate::activity::Activity;

/// A stream's receiving half, shared by its reader and its link's driver.
#[derive(Debug)]
pub(super) struct Inbound(Mutex<Received>);

#[derive(Debug)]
pub(super) struct Received {
    recv: RecvStream,
    /// Its window has not been given back, so that it holds a window at most.
    pub unread: Queue,
    /// A reader has found nothing, and is woken by HTTP/2.
    reader_waits: bool,
    ended: bool,
    /// Woken when something comes and no reader waits.
    waker: Waker,
    observed: Option<Observed>,
}

/// An observer of the number of unread bytes.
#[derive(Debug)]
struct Observed {
    observer: Arc<dyn UnreadObserver>,
    /// What it knows.
    told: usize,
    /// The reader that found nothing and was not woken since: it may be held up by what it writes.
    reader: Option<Waker>,
}

/// A change of what is unread that is worth telling of: one frame read at a time is none.
pub(super) const STEP: usize = 64 * 1024;

/// Woken by h2 under its lock, where nothing can be taken.
struct DataWaker {
    /// Weak: h2 keeps the waker for as long as the stream is open.
    inbound: Weak<Inbound>,
    unattended: Arc<UnattendedStreams>,
}

/// The streams of a link that have something and no reader.
#[derive(Debug)]
pub(crate) struct UnattendedStreams {
    activity: Arc<Activity>,
    waiting: Mutex<Vec<Weak<Inbound>>>,
}

// === impl Inbound ===

impl Inbound {
    pub fn new(recv: RecvStream, unread: Queue) -> Arc<Self> {
        let waker = Waker::noop().clone();
        Arc::new(Self(Mutex::new(Received { recv, unread, reader_waits: false, ended: false, waker, observed: None })))
    }

    pub fn attended_by(self: &Arc<Self>, unattended: Arc<UnattendedStreams>) {
        self.lock().waker = Arc::new(DataWaker { inbound: Arc::downgrade(self), unattended }).into();
    }

    pub fn observed_by(&self, observer: Arc<dyn UnreadObserver>) {
        let mut received = self.lock();
        received.observed = Some(Observed { observer, told: 0, reader: None });
        // From here on the driver attends to it.
        received.take_unwaited();
    }

    pub fn lock(&self) -> MutexGuard<'_, Received> {
        self.0.lock()
    }
}

// === impl Received ===

impl Received {
    pub fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if let Some(piece) = self.unread.pop(usize::MAX) {
            return Poll::Ready(Some(Ok(piece)));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        loop {
            let polled = self.recv.poll_data(cx);
            self.reader_waits = polled.is_pending();
            if let Some(observed) = &mut self.observed {
                observed.waits(self.reader_waits, cx);
            }
            return Poll::Ready(match ready!(polled) {
                Some(Ok(data)) if data.is_empty() => continue,
                Some(Ok(data)) => Some(Ok(data)),
                Some(Err(error)) => Some(Err(lost(&error))),
                None => {
                    self.ended = true;
                    None
                }
            });
        }
    }

    /// Takes what has come since the last read, unless a reader waits: it takes that itself, and
    /// the waker is its own.
    pub fn take_unwaited(&mut self) {
        if self.reader_waits {
            return;
        }
        let is_over = take(&mut self.recv, &mut self.unread, &mut Context::from_waker(&self.waker));
        if let Some(observed) = &mut self.observed
            && (is_over || !self.unread.is_empty())
            && let Some(reader) = observed.reader.take()
        {
            reader.wake();
        }
        self.tell();
    }

    /// The same for a reader that waits, where an observer wants to know what is unread: its writes
    /// have no room, so it may not come to read either. It is woken when there is something.
    pub fn take_behind_writer(&mut self) {
        if self.observed.is_some() {
            self.reader_waits = false;
            self.take_unwaited();
        }
    }

    /// What is unread has changed.
    pub fn tell(&mut self) {
        if let Some(observed) = &mut self.observed {
            observed.tell(self.unread.held());
        }
    }

    pub fn release(&mut self, bytes: usize) {
        // Fails only for more than was received, and for a stream that has ended there is nothing
        // to give back.
        let _ = self.recv.flow_control().release_capacity(bytes);
    }

    /// Everything up to the peer's end has been read.
    pub fn is_read(&self) -> bool {
        self.unread.is_empty() && (self.ended || self.recv.is_end_stream())
    }
}

// === impl Observed ===

impl Observed {
    fn waits(&mut self, waits: bool, cx: &Context<'_>) {
        match &mut self.reader {
            Some(reader) if waits => reader.clone_from(cx.waker()),
            reader => *reader = waits.then(|| cx.waker().clone()),
        }
    }

    fn tell(&mut self, unread: usize) {
        let unread = if unread < STEP { 0 } else { unread };
        if unread.abs_diff(self.told) >= STEP {
            self.told = unread;
            self.observer.unread(unread);
        }
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.tell(0);
    }
}

/// Takes what there is off HTTP/2; says whether nothing more will come. A later poll gets the same
/// end again.
pub(crate) fn take(recv: &mut RecvStream, unread: &mut Queue, cx: &mut Context<'_>) -> bool {
    loop {
        match recv.poll_data(cx) {
            Poll::Ready(Some(Ok(data))) if data.is_empty() => {}
            Poll::Ready(Some(Ok(data))) => unread.push(data),
            Poll::Ready(_) => return true,
            Poll::Pending => return false,
        }
    }
}

// === impl DataWaker ===

impl Wake for DataWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.unattended.waiting.lock().push(self.inbound.clone());
        self.unattended.activity.signals.wake();
    }
}

// === impl UnattendedStreams ===

impl UnattendedStreams {
    pub fn new(activity: Arc<Activity>) -> Self {
        Self { activity, waiting: Mutex::default() }
    }

    /// For the link's driver, after it has moved frames.
    pub fn attend(&self) {
        // Not under the lock: h2 rings under its own.
        let waiting = std::mem::take(&mut *self.waiting.lock());
        for inbound in waiting.iter().filter_map(Weak::upgrade) {
            inbound.lock().take_unwaited();
        }
    }
}
