//! A socket below TLS that gives one record at a read, as Go's TLS does: its reader never sees two
//! records as one piece, however late it comes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes before a record's payload (RFC 8446 §5.1).
const HEADER: usize = 5;

/// Reads of at most one record.
#[derive(Debug)]
pub struct Records<T> {
    io: T,
    header: [u8; HEADER],
    /// Number of header bytes that were read.
    read: usize,
    /// Number of header bytes that were given on.
    given: usize,
    /// Payload still to come.
    left: usize,
}

// === impl Records ===

impl<T> Records<T> {
    pub fn new(io: T) -> Self {
        Self { io, header: [0; HEADER], read: 0, given: 0, left: 0 }
    }

    pub fn get_ref(&self) -> &T {
        &self.io
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Records<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.left == 0 && this.read < HEADER {
            let mut header = ReadBuf::new(&mut this.header[this.read..]);
            ready!(Pin::new(&mut this.io).poll_read(cx, &mut header))?;
            match header.filled().len() {
                0 => return Poll::Ready(Ok(())),
                read => this.read += read,
            }
            if this.read == HEADER {
                this.left = usize::from(u16::from_be_bytes([this.header[3], this.header[4]]));
            }
        }
        if this.given < this.read {
            let length = buf.remaining().min(this.read - this.given);
            buf.put_slice(&this.header[this.given..this.given + length]);
            this.given += length;
            if this.left == 0 && this.given == HEADER {
                (this.read, this.given) = (0, 0);
            }
            return Poll::Ready(Ok(()));
        }
        let length = buf.remaining().min(this.left);
        let mut piece = ReadBuf::new(buf.initialize_unfilled_to(length));
        ready!(Pin::new(&mut this.io).poll_read(cx, &mut piece))?;
        let length = piece.filled().len();
        buf.advance(length);
        this.left -= length;
        if this.left == 0 {
            (this.read, this.given) = (0, 0);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Records<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}
