//! Gathering what one turn of a task writes.
//!
//! An HTTP/2 library writes and flushes frame by frame, and each would become a TLS record and a system call of its own: for small
//! answers both cost more than all the rest. Here writes and flushes only fill a buffer; whoever drives the connection lets it out when
//! its turn is over, in records as large as they can be.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What is gathered before it is let out in mid-turn: four full TLS records, which rustls hands to the socket as one.
const MOST: usize = 64 * 1024;
const FIRST: usize = 1024;

/// The stream for the library.
#[derive(Debug)]
pub struct Gathered<T>(Arc<Mutex<Gathering<T>>>);

/// The other end, to be given the connection that was made of the stream.
#[derive(Debug)]
#[must_use = "nothing is sent without it"]
pub struct Outlet<T>(Arc<Mutex<Gathering<T>>>);

/// Drives a connection, and lets out what it has written after each turn.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Driven<F, T> {
    connection: F,
    gathering: Arc<Mutex<Gathering<T>>>,
}

#[derive(Debug)]
struct Gathering<T> {
    stream: T,
    waiting: BytesMut,
    /// What waited when it was last let out: the next turn will be alike.
    usual: usize,
    /// Something went to the stream since it was flushed.
    unflushed: bool,
    /// A write found no room, and its writer waits.
    refused: bool,
    /// Of letting out, for the library to find.
    failure: Option<io::Error>,
}

/// Both ends of a stream whose writes are gathered.
pub fn gather<T>(stream: T) -> (Gathered<T>, Outlet<T>) {
    let gathering =
        Gathering { stream, waiting: BytesMut::new(), usual: FIRST, unflushed: false, refused: false, failure: None };
    let gathering = Arc::new(Mutex::new(gathering));
    (Gathered(Arc::clone(&gathering)), Outlet(gathering))
}

// === impl Outlet ===

impl<T: AsyncWrite + Unpin> Outlet<T> {
    /// `connection` must be what reads and writes this stream.
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
}

impl<F: Future + Unpin, T: AsyncWrite + Unpin> Future for Driven<F, T> {
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

impl<T: AsyncWrite + Unpin> Gathering<T> {
    /// After a turn. A failure is kept for the connection, which is woken to find it.
    fn let_out(&mut self, cx: &mut Context<'_>) {
        let before = self.waiting.len();
        let flushed = if self.failure.is_some() { Poll::Pending } else { self.poll_flush(cx) };
        if let Poll::Ready(Err(error)) = flushed {
            self.failure = Some(error);
            cx.waker().wake_by_ref();
        } else if self.refused && self.waiting.len() < before {
            // The socket wakes nobody for the room that was made here.
            self.refused = false;
            cx.waker().wake_by_ref();
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(cx))?;
        // An idle connection holds nothing.
        self.waiting = BytesMut::new();
        if self.unflushed {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Hands all that waits to the stream.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.waiting.is_empty() {
            self.usual = self.waiting.len().max(FIRST);
        }
        while !self.waiting.is_empty() {
            let sent = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.waiting))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.waiting.advance(sent);
            self.unflushed = true;
        }
        Poll::Ready(Ok(()))
    }

    fn take(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(MOST.saturating_sub(self.waiting.len()));
        self.waiting.extend_from_slice(&bytes[..taken]);
        taken
    }

    /// For `bytes` that come next: growing step by step would copy what is there already.
    fn make_room(&mut self, bytes: usize) {
        if self.waiting.is_empty() && bytes > 0 {
            self.waiting.reserve(bytes.max(self.usual).min(MOST));
        }
    }

    /// Room for at least one byte.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Err(failure));
        }
        if self.waiting.len() < MOST {
            return Poll::Ready(Ok(()));
        }
        match self.poll_send(cx) {
            Poll::Pending if self.waiting.len() == MOST => {
                self.refused = true;
                Poll::Pending
            }
            Poll::Pending => Poll::Ready(Ok(())),
            sent @ Poll::Ready(_) => sent,
        }
    }
}

// === impl Gathered ===

impl<T: AsyncRead + Unpin> AsyncRead for Gathered<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut gathering = self.0.lock();
        match gathering.failure.take() {
            Some(failure) => Poll::Ready(Err(failure)),
            None => Pin::new(&mut gathering.stream).poll_read(cx, buf),
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Gathered<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let mut gathering = self.0.lock();
        ready!(gathering.poll_room(cx))?;
        gathering.make_room(buf.len());
        Poll::Ready(Ok(gathering.take(buf)))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut gathering = self.0.lock();
        ready!(gathering.poll_room(cx))?;
        gathering.make_room(bufs.iter().map(|buf| buf.len()).sum());
        Poll::Ready(Ok(bufs.iter().map(|buf| gathering.take(buf)).sum()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Does nothing: that is the point.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.lock().failure.take().map_or(Poll::Ready(Ok(())), |failure| Poll::Ready(Err(failure)))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut gathering = self.0.lock();
        ready!(gathering.poll_flush(cx))?;
        Pin::new(&mut gathering.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
