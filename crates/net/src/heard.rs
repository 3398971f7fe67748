//! Listening in on a stream: somebody is told of every read and write that moved something.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::seal::Seal;

/// Who is told. Called for every read and write: must be cheap.
pub trait Ear {
    /// `bytes` were received; never none.
    fn heard(&mut self, bytes: &[u8]);

    /// `bytes` were taken by the stream below.
    fn said(&self, _bytes: usize) {}
}

/// A stream with a listener.
#[derive(Debug)]
pub struct Heard<T, E> {
    stream: T,
    ear: E,
}

// === impl Heard ===

impl<T, E: Ear> Heard<T, E> {
    pub fn new(stream: T, ear: E) -> Self {
        Self { stream, ear }
    }

    fn said(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = written {
            self.ear.said(bytes);
        }
        written
    }
}

impl<T: AsyncRead + Unpin, E: Ear + Unpin> AsyncRead for Heard<T, E> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let bytes = &buf.filled()[before..];
        if !bytes.is_empty() {
            self.ear.heard(bytes);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin, E: Ear + Unpin> AsyncWrite for Heard<T, E> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.said(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.said(written)
    }

    crate::forward!(stream: is_write_vectored, poll_flush, poll_shutdown);
}

impl<T: Seal, E: Ear> Seal for Heard<T, E> {
    fn seal(&mut self, parts: [&[u8]; 2]) -> io::Result<usize> {
        let bytes = self.stream.seal(parts)?;
        self.ear.said(bytes);
        Ok(bytes)
    }
}
