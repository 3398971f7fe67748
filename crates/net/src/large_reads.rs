//! Reads from a socket in large pieces, however little the reader asks for.
//!
//! rustls asks for 4 KiB at a time, which makes five system calls per full record. A stream that
//! always has more is read in growing pieces. One that delivers little at a time is read directly
//! by its reader, without a buffer.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

/// Bytes requested from the stream below: at first the same as rustls requests.
const FIRST: usize = 4 * 1024;
/// The size of two full records, and the largest piece that the allocator caches.
const LARGEST: usize = 32 * 1024;
/// Factor by which pieces grow and shrink.
const STEP: usize = 8;

/// A stream that is read in large pieces. Holds no buffer while there is nothing to read.
#[derive(Debug)]
pub struct LargeReads<T> {
    stream: T,
    /// Read, but not requested yet.
    early: BytesMut,
    piece: usize,
}

// === impl LargeReads ===

impl<T> LargeReads<T> {
    pub fn new(stream: T) -> Self {
        Self { stream, early: BytesMut::new(), piece: FIRST }
    }

    /// The stream below.
    pub fn get_ref(&self) -> &T {
        &self.stream
    }
}

impl<T: AsyncRead + Unpin> LargeReads<T> {
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.early.reserve(self.piece);
        let read = pin!(self.stream.read_buf(&mut self.early)).poll(cx);
        if self.early.is_empty() {
            self.early = BytesMut::new();
        }
        let bytes = ready!(read)?;
        self.learn(bytes);
        Poll::Ready(Ok(()))
    }

    /// Chooses the size of the next read after a read of this many bytes.
    fn learn(&mut self, bytes: usize) {
        if bytes >= self.piece {
            self.piece = (self.piece * STEP).min(LARGEST);
        } else if bytes < self.piece / STEP {
            self.piece = (self.piece / STEP).max(FIRST);
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for LargeReads<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.early.is_empty() {
            if buf.remaining() >= self.piece {
                // Left from when more came. This read bypasses it, so nothing else would drop it.
                self.early = BytesMut::new();
                let before = buf.filled().len();
                ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
                self.learn(buf.filled().len() - before);
                return Poll::Ready(Ok(()));
            }
            ready!(self.poll_fill(cx))?;
        }
        let bytes = self.early.len().min(buf.remaining());
        buf.put_slice(&self.early[..bytes]);
        self.early.advance(bytes);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for LargeReads<T> {
    crate::forward!(stream: poll_write, poll_write_vectored, is_write_vectored, poll_flush, poll_shutdown);
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn where_there_is_more_small_reads_take_one_large_one_below() {
        let (near, mut far) = duplex(64 * 1024);
        let mut near = LargeReads::new(near);
        let sent: Vec<u8> = (0..10_000u32).map(|number| number.to_le_bytes()[0]).collect();
        far.write_all(&sent).await.unwrap();
        let mut read = vec![0; FIRST];
        near.read_exact(&mut read).await.unwrap();
        assert!(near.early.is_empty(), "nothing says yet that there is more");
        read.resize(FIRST + 100, 0);
        near.read_exact(&mut read[FIRST..]).await.unwrap();
        assert_eq!(near.early.len(), sent.len() - read.len());
        drop(far);
        near.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, sent);
    }

    #[tokio::test]
    async fn nothing_is_held_while_nothing_comes() {
        let (near, mut far) = duplex(1024);
        let mut near = LargeReads { piece: LARGEST, ..LargeReads::new(near) };
        far.write_all(b"x").await.unwrap();
        assert_eq!(near.read_u8().await.unwrap(), b'x');
        let mut more = [0; 16];
        let asked = tokio::time::timeout(std::time::Duration::ZERO, near.read(&mut more)).await;
        assert!(asked.is_err());
        assert_eq!((near.early.capacity(), near.piece), (0, FIRST));
    }

    #[tokio::test]
    async fn the_buffer_of_large_reads_is_dropped_when_little_comes() {
        let (near, mut far) = duplex(1024);
        let mut near = LargeReads { piece: LARGEST, ..LargeReads::new(near) };
        far.write_all(b"x").await.unwrap();
        near.read_exact(&mut [0]).await.unwrap();
        assert!(near.early.capacity() > FIRST, "the first read left no buffer");
        far.write_all(b"y").await.unwrap();
        assert_eq!(near.read(&mut [0; FIRST]).await.unwrap(), 1);
        assert_eq!(near.early.capacity(), 0);
    }
}
