//! Whether a client has said anything yet.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes received, up to the length of the HTTP/2 preface.
#[derive(Clone, Default)]
pub struct Ear(Arc<AtomicUsize>);

/// A stream that counts its first bytes.
pub struct Heard<T> {
    stream: T,
    ear: Ear,
}

// === impl Ear ===

impl Ear {
    /// RFC 9113 §3.4.
    const PREFACE: usize = 24;

    pub fn heard_preface(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= Self::PREFACE
    }

    fn heard(&self, bytes: usize) {
        if !self.heard_preface() {
            self.0.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

// === impl Heard ===

impl<T> Heard<T> {
    pub fn new(stream: T, ear: Ear) -> Self {
        Self { stream, ear }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Heard<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.ear.heard(buf.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Heard<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
