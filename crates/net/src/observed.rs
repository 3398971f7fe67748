//! A stream whose activity is observed: reports every read and write that moved bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::seal::Seal;

/// Called for every read and write, so it must be cheap.
pub trait ActivityObserver {
    /// Somebody reads, and has room for so many bytes.
    fn on_poll(&mut self, _room: usize) {}

    /// `bytes` were received, at least one.
    fn on_read(&mut self, bytes: &[u8]);

    /// Called after each read.
    ///
    /// # Errors
    /// If the stream must not be read any further.
    fn check(&self) -> io::Result<()> {
        Ok(())
    }

    /// The stream below has taken `bytes`.
    fn on_write(&self, _bytes: usize) {}
}

/// A stream and its observer.
#[derive(Debug)]
pub struct Observed<T, E> {
    stream: T,
    observer: E,
}

// === impl Observed ===

impl<T, E: ActivityObserver> Observed<T, E> {
    pub fn new(stream: T, observer: E) -> Self {
        Self { stream, observer }
    }

    fn on_write(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = written {
            self.observer.on_write(bytes);
        }
        written
    }
}

impl<T: AsyncRead + Unpin, E: ActivityObserver + Unpin> AsyncRead for Observed<T, E> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.observer.on_poll(buf.remaining());
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let bytes = &buf.filled()[before..];
        if !bytes.is_empty() {
            self.observer.on_read(bytes);
        }
        Poll::Ready(self.observer.check())
    }
}

impl<T: AsyncWrite + Unpin, E: ActivityObserver + Unpin> AsyncWrite for Observed<T, E> {
    crate::forward!(stream then on_write: poll_write, poll_write_vectored);
    crate::forward!(stream: is_write_vectored, poll_flush, poll_shutdown);
}

impl<T: Seal, E: ActivityObserver> Seal for Observed<T, E> {
    fn seal(&mut self, parts: [&[u8]; 2]) -> io::Result<usize> {
        let bytes = self.stream.seal(parts)?;
        self.observer.on_write(bytes);
        Ok(bytes)
    }
}
