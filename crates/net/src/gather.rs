//! Gathers the writes of one turn of a task.
//!
//! An HTTP/2 library writes and flushes frame by frame, and each frame would become its own TLS
//! record and system call: for small responses both cost more than all the rest. Here writes and
//! flushes only fill a buffer. The task that drives the connection sends the buffer at the end of
//! its turn, in records as large as possible. Data that fill a record before that are encrypted at
//! once from where they are, so bulk data are not copied into the buffer.

mod gathering;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use self::gathering::{FIRST, Gathering};
use crate::seal::Seal;

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
