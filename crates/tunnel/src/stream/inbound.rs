//! Data that a stream's peer has sent and its reader has not read yet.
//!
//! In h2 a frame of one byte takes 250, and h2 ends a link with many of them. Here they are joined.
//! Each read or write also takes what has arrived; for a stream without either, because its client
//! has stalled, the link's driver does.

mod unattended;

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use h2::RecvStream;
use net::queue::Queue;
use parking_lot::{Mutex, MutexGuard};

use self::unattended::DataWaker;
use super::{HeldObserver, lost};

pub(crate) use self::unattended::UnattendedStreams;

/// A stream's receiving half, shared by its reader and its link's driver.
#[derive(Debug)]
pub(super) struct Inbound(Mutex<Received>);

#[derive(Debug)]
pub(super) struct Received {
    recv: RecvStream,
    /// Its window has not been given back, so it holds a window at most.
    pub unread: Queue,
    /// A reader found nothing, and HTTP/2 will wake it.
    reader_waits: bool,
    ended: bool,
    /// Woken when data arrives and no reader waits.
    waker: Waker,
    observed: Option<Observed>,
}

/// An observer of what is held.
#[derive(Debug)]
struct Observed {
    observer: Arc<dyn HeldObserver>,
    /// The number that it got last.
    told: usize,
    /// The reader that found nothing and was not woken since: its own writes may hold it up.
    reader: Option<Waker>,
}

/// Smallest change of the unread bytes that is reported: reading one frame at a time causes none.
pub(super) const STEP: usize = 64 * 1024;

// === impl Inbound ===

impl Inbound {
    pub fn new(recv: RecvStream, unread: Queue) -> Arc<Self> {
        let waker = Waker::noop().clone();
        Arc::new(Self(Mutex::new(Received { recv, unread, reader_waits: false, ended: false, waker, observed: None })))
    }

    pub fn attended_by(self: &Arc<Self>, unattended: Arc<UnattendedStreams>) {
        self.lock().waker = Arc::new(DataWaker { inbound: Arc::downgrade(self), unattended }).into();
    }

    pub fn observed_by(&self, observer: Arc<dyn HeldObserver>) {
        let mut received = self.lock();
        received.observed = Some(Observed { observer, told: 0, reader: None });
        // From here on the link's driver takes its data.
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

    /// Takes the data that has arrived since the last read, unless a reader waits: the reader takes
    /// it itself, and its waker is the one that is registered.
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

    /// Like [`Self::take_unwaited`], but also for a reader that waits, if there is an observer: the
    /// reader's writes have no room, so it may not come to read either. It is woken when data
    /// arrives.
    pub fn take_behind_writer(&mut self) {
        if self.observed.is_some() {
            self.reader_waits = false;
            self.take_unwaited();
        }
    }

    /// Reports what is about to wait in HTTP/2.
    pub fn unsent(&self, data: Bytes) -> Bytes {
        match &self.observed {
            Some(observed) => observed.observer.unsent(data),
            None => data,
        }
    }

    /// Reports a change of the unread bytes.
    pub fn tell(&mut self) {
        if let Some(observed) = &mut self.observed {
            observed.tell(self.unread.held());
        }
    }

    pub fn release(&mut self, bytes: usize) {
        // Fails only for more than was received, and a stream that has ended has nothing to give
        // back.
        let _ = self.recv.flow_control().release_capacity(bytes);
    }

    /// Whether everything up to the peer's end has been read.
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

/// Takes the data that has arrived off HTTP/2, and returns whether nothing more will come. A later
/// poll gets the same end again.
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
