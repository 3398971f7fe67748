//! A connection from which bytes were read already.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection after a head: the bytes that were read after the head come first.
#[derive(Debug)]
pub struct Prefixed<T> {
    pub io: T,
    early: Bytes,
}

/// Moves as much of `early` as fits into `buf`. False if there was none.
pub fn take_early(early: &mut Bytes, buf: &mut ReadBuf<'_>) -> bool {
    if early.is_empty() {
        return false;
    }
    let bytes = early.len().min(buf.remaining());
    buf.put_slice(&early[..bytes]);
    early.advance(bytes);
    if early.is_empty() {
        // Frees the head's buffer.
        *early = Bytes::new();
    }
    true
}

// === impl Prefixed ===

impl<T> Prefixed<T> {
    pub fn new(io: T, early: Bytes) -> Self {
        Self { io, early }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Prefixed<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if take_early(&mut this.early, buf) { Poll::Ready(Ok(())) } else { Pin::new(&mut this.io).poll_read(cx, buf) }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Prefixed<T> {
    crate::forward!(io: poll_write, poll_write_vectored, is_write_vectored, poll_flush, poll_shutdown);
}
