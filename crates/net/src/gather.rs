//! Gathers the writes of one turn of a task.
//!
//! An HTTP/2 library writes and flushes frame by frame, and each frame would become its own TLS
//! record and system call: for small responses both cost more than all the rest. Here writes and
//! flushes only fill a buffer. The task that drives the connection sends the buffer at the end of
//! its turn, in records as large as possible. Data that fill a record before that are encrypted at
//! once from where they are, so bulk data are not copied into the buffer.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::seal::{RECORD, Seal};

/// Most bytes gathered before they are sent during a turn: four full TLS records, which go to the
/// socket as one write.
const MOST: usize = 4 * RECORD;
const FIRST: usize = 1024;

/// The stream for the library.
#[derive(Debug)]
pub struct Gathered<T>(Arc<Mutex<Gathering<T>>>);

/// The other end, which drives the connection made of the stream.
#[derive(Debug)]
#[must_use = "nothing is sent without it"]
pub struct Outlet<T>(Arc<Mutex<Gathering<T>>>);

/// Drives a connection, and sends its writes after each turn.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Driven<F, T> {
    connection: F,
    gathering: Arc<Mutex<Gathering<T>>>,
}

#[derive(Debug)]
struct Gathering<T> {
    stream: T,
    /// Less than a record, if the stream encrypts.
    waiting: BytesMut,
    /// Bytes that waited when they were last sent, because the next turn will be similar.
    usual: usize,
    /// Bytes that the stream has taken since its last flush.
    unflushed: usize,
    /// A write found no room, and its writer waits.
    refused: bool,
    /// An error of sending, which the library gets from its next call.
    failure: Option<io::Error>,
    /// Bytes read since the turn began, and their limit.
    read: usize,
    most_read: usize,
}

/// Makes both ends of a stream whose writes are gathered.
pub fn gather<T>(stream: T) -> (Gathered<T>, Outlet<T>) {
    let gathering = Gathering {
        stream,
        waiting: BytesMut::new(),
        usual: FIRST,
        unflushed: 0,
        refused: false,
        failure: None,
        read: 0,
        most_read: usize::MAX,
    };
    let gathering = Arc::new(Mutex::new(gathering));
    (Gathered(Arc::clone(&gathering)), Outlet(gathering))
}

// === impl Outlet ===

impl<T: AsyncWrite + Seal + Unpin> Outlet<T> {
    /// `connection` must be the one that reads and writes this stream.
    pub fn drive<F>(self, connection: F) -> Driven<F, T> {
        Driven { connection, gathering: self.0 }
    }
}

// === impl Driven ===

impl<F, T> Driven<F, T> {
    /// The connection, between two turns.
    pub fn connection(&mut self) -> &mut F {
        &mut self.connection
    }

    /// Ends a turn's reads after this many bytes and one buffer of the reader. The rest waits for
    /// the next turn, after the other tasks.
    pub fn reading_at_most(self, bytes: usize) -> Self {
        self.gathering.lock().most_read = bytes;
        self
    }
}

impl<F: Future + Unpin, T: AsyncWrite + Seal + Unpin> Future for Driven<F, T> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let end = Pin::new(&mut self.connection).poll(cx);
        if end.is_pending() {
            self.gathering.lock().let_out(cx);
        }
        end
    }
}

// === impl Gathering ===

impl<T: AsyncWrite + Seal + Unpin> Gathering<T> {
    /// Sends after a turn. An error is stored for the connection, which is woken for it.
    fn let_out(&mut self, cx: &mut Context<'_>) {
        self.read = 0;
        let before = self.held();
        let sent = if self.failure.is_some() { Poll::Pending } else { self.poll_send(cx) };
        if let Poll::Ready(Err(error)) = sent {
            self.failure = Some(error);
            cx.waker().wake_by_ref();
        } else if self.refused && self.held() < before {
            // The socket does not wake the task for the room made here.
            self.refused = false;
            cx.waker().wake_by_ref();
        }
        if self.waiting.is_empty() {
            // An idle connection holds no memory.
            self.waiting = BytesMut::new();
        }
    }

    /// Bytes written here that may not have reached the socket yet.
    fn held(&self) -> usize {
        self.unflushed + self.waiting.len()
    }

    /// Passes all waiting bytes to the stream, and through it to the socket.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.waiting.is_empty() {
            // The rest after full records does not show how much waited before.
            self.usual = if self.unflushed > 0 { RECORD } else { self.waiting.len().max(FIRST) };
        }
        while !self.waiting.is_empty() {
            let sent = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.waiting))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.pass_on(sent);
        }
        if self.unflushed > 0 {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.unflushed = 0;
        }
        Poll::Ready(Ok(()))
    }

    /// The stream has taken this many of the waiting bytes.
    fn pass_on(&mut self, bytes: usize) {
        self.unflushed += bytes;
        if bytes == self.waiting.len() {
            self.waiting.clear(); // `advance` would not keep the space
        } else {
            self.waiting.advance(bytes);
        }
    }

    /// Takes as many of `bytes` as fit.
    fn take(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(MOST.saturating_sub(self.held()));
        let sealed = self.seal(&bytes[..taken])?;
        let rest = &bytes[sealed..taken];
        if self.waiting.is_empty() && !rest.is_empty() {
            // To grow step by step would copy the existing bytes.
            self.waiting.reserve(rest.len().max(self.usual).min(MOST));
        }
        self.waiting.extend_from_slice(rest);
        Ok(taken)
    }

    /// Encrypts the records that `bytes` fill. Returns how many of the bytes these contain.
    fn seal(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let before = self.waiting.len();
        let full = (before + bytes.len()) / RECORD * RECORD;
        if full <= before {
            return Ok(0);
        }
        let sealed = self.stream.seal([&self.waiting, &bytes[..full - before]])?;
        let waited = sealed.min(before);
        self.pass_on(waited);
        self.unflushed += sealed - waited;
        Ok(sealed - waited)
    }

    /// Waits for room for at least one byte.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Err(failure));
        }
        if self.held() < MOST {
            return Poll::Ready(Ok(()));
        }
        let sent = self.poll_send(cx);
        self.refused = sent.is_pending();
        sent
    }
}

// === impl Gathered ===

impl<T: AsyncRead + Unpin> AsyncRead for Gathered<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut gathering = self.0.lock();
        if let Some(failure) = gathering.failure.take() {
            return Poll::Ready(Err(failure));
        }
        if gathering.read >= gathering.most_read {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buf.filled().len();
        let polled = Pin::new(&mut gathering.stream).poll_read(cx, buf);
        gathering.read += buf.filled().len() - before;
        polled
    }
}

impl<T: AsyncWrite + Seal + Unpin> AsyncWrite for Gathered<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let mut gathering = self.0.lock();
        ready!(gathering.poll_room(cx))?;
        Poll::Ready(gathering.take(buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut gathering = self.0.lock();
        ready!(gathering.poll_room(cx))?;
        Poll::Ready(bufs.iter().map(|buf| gathering.take(buf)).sum())
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Does nothing on purpose.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.lock().failure.take().map_or(Poll::Ready(Ok(())), |failure| Poll::Ready(Err(failure)))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut gathering = self.0.lock();
        ready!(gathering.poll_send(cx))?;
        Pin::new(&mut gathering.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
