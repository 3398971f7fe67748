//! The direction from the socket to the stream.

use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncReadExt;
use tokio::time::{Sleep, sleep};

use super::{BrokenSide, Socket};
use crate::gauge::Account;
use crate::{Settings, Stream};

/// Reads the socket while the stream takes what was read.
pub(super) struct Outward {
    /// Bytes read that wait for room.
    waiting: Bytes,
    /// Size of the next buffer; grows with the traffic.
    size: usize,
    /// Checks on a socket that is not read because the stream has no room.
    look: Option<Look>,
    /// The socket has broken: what it brought is still passed on, but no end follows.
    cut: bool,
    done: bool,
}

/// The state at the last check.
struct Look {
    next: Pin<Box<Sleep>>,
    moved: u64,
    /// Consecutive checks at which nothing had moved and the peer was gone.
    forsaken: u32,
}

// === impl Outward ===

impl Outward {
    const FIRST_BUFFER: usize = 4 * 1024;
    /// One frame: a remainder would be a frame of its own.
    const LARGEST_BUFFER: usize = Settings::LARGEST_FRAME as usize;
    /// Shorter reads are copied out of the buffer, which is then reused: a stalled link must not
    /// pin a buffer for every few bytes.
    const SMALL: usize = 1024;
    /// A socket that is not read does not report that its peer has reset it.
    const LOOK_EVERY: Duration = Duration::from_secs(1);
    /// A peer that wrote and closed is owed the delivery of its bytes, but not forever: it is given
    /// up after this many checks at which nothing moved and no reader was left for an answer. Two
    /// minutes are about what the kernel gives a closed TCP socket whose peer takes nothing
    /// (`tcp_probe_timer` in `net/ipv4/tcp_timer.c`). A slow reader's window comes in lumps of half
    /// its size, so a shorter time would cut it off.
    const MOST_FORSAKEN: u32 = 120;

    /// Whether the socket's end was passed on, or the stream takes no more.
    pub fn done(&self) -> bool {
        self.done
    }

    /// Bytes that the stream has not taken.
    pub fn held(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Called when the socket has broken.
    pub fn cut(&mut self) {
        self.cut = true;
        self.look = None;
    }

    /// Called when the stream takes no more.
    pub fn discard(&mut self, account: &Account) {
        account.give(self.waiting.len());
        self.waiting = Bytes::new();
        self.done = true;
    }

    pub fn poll<S: Socket>(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut S,
        stream: &mut Stream,
        account: &Account,
        moved: &AtomicU64,
    ) -> Result<(), BrokenSide> {
        if self.done {
            return Ok(());
        }
        match self.poll_move(cx, socket, stream, account, moved) {
            Poll::Ready(Ok(())) => self.done = true,
            Poll::Ready(Err(BrokenSide::Stream(error))) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.discard(account);
            }
            // Nothing more can be read, and the stream has everything that was.
            Poll::Ready(Err(BrokenSide::Socket(_))) if self.cut => self.done = true,
            Poll::Ready(Err(broke)) => return Err(broke),
            Poll::Pending if self.waiting.is_empty() => {
                self.look = None;
                stream.settle();
            }
            // The deferred reset bounds the wait for the last bytes.
            Poll::Pending if self.cut => {}
            Poll::Pending => self.look_after(cx, socket, moved.load(Ordering::Relaxed)).map_err(BrokenSide::Socket)?,
        }
        Ok(())
    }

    /// Ready at the socket's end. [`io::ErrorKind::BrokenPipe`] comes from the stream, which takes
    /// no more; reading never returns it.
    fn poll_move<S: Socket>(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut S,
        stream: &mut Stream,
        account: &Account,
        moved: &AtomicU64,
    ) -> Poll<Result<(), BrokenSide>> {
        // Not kept between polls: thousands of idle connections hold no buffer.
        let mut buffer = BytesMut::new();
        loop {
            while !self.waiting.is_empty() {
                let room = ready!(stream.poll_room(cx, self.waiting.len())).map_err(BrokenSide::Stream)?;
                stream.send(account.lend(self.waiting.split_to(room))).map_err(BrokenSide::Stream)?;
                moved.fetch_add(room as u64, Ordering::Relaxed);
            }
            if buffer.capacity() < self.size / 4 {
                buffer = BytesMut::with_capacity(self.size);
            }
            let space = buffer.capacity();
            let read = ready!(pin!(socket.read_buf(&mut buffer)).poll(cx)).map_err(BrokenSide::Socket)?;
            if read == 0 {
                return Poll::Ready(if self.cut { Ok(()) } else { stream.finish().map_err(BrokenSide::Stream) });
            }
            account.take(read);
            self.waiting = if read < Self::SMALL {
                let copy = Bytes::copy_from_slice(&buffer);
                buffer.clear();
                copy
            } else {
                buffer.split().freeze()
            };
            self.adapt(read, space);
        }
    }

    /// A full buffer means that more is coming; a nearly empty one, that a smaller one would do.
    fn adapt(&mut self, read: usize, space: usize) {
        if read == space {
            self.size = (self.size * 4).min(Self::LARGEST_BUFFER);
        } else if read < self.size / 8 {
            self.size = (self.size / 4).max(Self::FIRST_BUFFER);
        }
    }

    fn look_after<S: Socket>(&mut self, cx: &mut Context<'_>, socket: &S, moved: u64) -> io::Result<()> {
        let look = self.look.get_or_insert_with(|| Look::at(moved));
        while look.next.as_mut().poll(cx).is_ready() {
            if let Some(error) = socket.error() {
                return Err(error);
            }
            let forsaken = look.moved == moved && socket.is_gone();
            *look = Look { forsaken: if forsaken { look.forsaken + 1 } else { 0 }, ..Look::at(moved) };
            if look.forsaken == Self::MOST_FORSAKEN {
                return Err(io::Error::new(io::ErrorKind::ConnectionReset, "closed before its bytes were taken"));
            }
        }
        Ok(())
    }
}

impl Look {
    fn at(moved: u64) -> Self {
        Self { next: Box::pin(sleep(Outward::LOOK_EVERY)), moved, forsaken: 0 }
    }
}

impl Default for Outward {
    fn default() -> Self {
        Self { waiting: Bytes::new(), size: Self::FIRST_BUFFER, look: None, cut: false, done: false }
    }
}
