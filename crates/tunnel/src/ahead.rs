//! Reads ahead while writes find no room, so that two ends that both write do not wait for each
//! other forever.
//!
//! h2 reads no frame before it has sent the PING, PONG, SETTINGS or refusal that it owes, and it
//! cannot send that while a DATA frame is partly written (`Connection::poll_ready` in its
//! `proto/connection.rs`). If both ends get there at the same moment, neither reads, and neither's
//! frame gets through unless the path has room for the rest of it.
//!
//! Reads return no more than a [`Turn`] may have.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use crate::turn::{Turn, Turns};

/// A connection below h2. Holds nothing unless it had to read ahead.
#[derive(Debug)]
pub(crate) struct ReadAhead<T> {
    io: T,
    early: BytesMut,
    /// What follows `early`: the end of file, or an error, which the stream below need not repeat.
    end: Option<io::Result<()>>,
    /// A write found no room, and the reader has not read since.
    stuck: bool,
    /// A read found nothing: its task waits for more.
    reader_waits: bool,
    turn: Turn,
}

// === impl ReadAhead ===

impl<T> ReadAhead<T> {
    /// Most bytes read ahead. This is more than the peer must get rid of before its write is done:
    /// the rest of a frame (64 KiB), what its TLS holds (`Settings::TLS_BUFFER`), and a third of
    /// its socket's buffer, because Linux calls a full one writable only then
    /// (`sk_stream_is_writeable`).
    const MOST: usize = 1024 * 1024;
    const STEP: usize = 16 * 1024;

    /// `preface` is the number of bytes before the first frame.
    pub fn new(io: T, turns: Turns, preface: usize) -> Self {
        let turn = Turn::new(turns, preface);
        Self { io, early: BytesMut::new(), end: None, stuck: false, reader_waits: false, turn }
    }

    fn poll_early(&mut self, buf: &mut ReadBuf<'_>) -> Option<io::Result<()>> {
        if !self.early.is_empty() {
            let bytes = self.early.len().min(buf.remaining());
            let bytes = self.turn.part(&self.early[..bytes]);
            buf.put_slice(&self.early[..bytes]);
            self.early.advance(bytes);
            if self.early.is_empty() {
                self.early = BytesMut::new();
            }
            return Some(Ok(()));
        }
        match self.end {
            Some(Ok(())) => Some(Ok(())),
            _ => self.end.take(),
        }
    }
}

impl<T: AsyncRead + Unpin> ReadAhead<T> {
    /// Reads ahead when a write finds no room for the second time without a read in between. h2
    /// retries in the same turn, so the second time means that it is not going to read. Does
    /// nothing for an h2 that reads in each turn, as it mostly does: what it would read is not
    /// copied, and little is held here when it stops reading.
    fn after<R>(&mut self, cx: &mut Context<'_>, written: Poll<R>) -> Poll<R> {
        if written.is_pending() && std::mem::replace(&mut self.stuck, true) {
            self.read_ahead(cx);
        }
        written
    }

    fn read_ahead(&mut self, cx: &mut Context<'_>) {
        let before = self.early.len();
        while self.early.len() < Self::MOST && self.end.is_none() {
            if self.early.capacity() == self.early.len() {
                self.early.reserve(Self::STEP);
            }
            let room = (Self::MOST - self.early.len()).min(self.early.capacity() - self.early.len());
            match pin!(self.io.read_buf(&mut (&mut self.early).limit(room))).poll(cx) {
                Poll::Ready(Ok(0)) => self.end = Some(Ok(())),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => self.end = Some(Err(error)),
                Poll::Pending => break,
            }
        }
        if self.early.is_empty() {
            self.early = BytesMut::new();
        }
        if self.reader_waits && (self.early.len() > before || self.end.is_some()) {
            // The stream below will not wake the reader for what was taken here.
            self.reader_waits = false;
            cx.waker().wake_by_ref();
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for ReadAhead<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.stuck = false;
        self.turn.check_flood()?;
        if self.turn.check_over() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(early) = self.poll_early(buf) {
            return Poll::Ready(early);
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, buf);
        self.reader_waits = read.is_pending();
        let this = &mut *self;
        let bytes = &buf.filled()[before..];
        let part = this.turn.part(bytes);
        if part < bytes.len() {
            this.early.extend_from_slice(&bytes[part..]);
            buf.set_filled(before + part);
        }
        read
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ReadAhead<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, buf);
        self.after(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.after(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.io).poll_flush(cx);
        self.after(cx, flushed)
    }

    net::forward!(io: is_write_vectored, poll_shutdown);
}

#[cfg(test)]
mod tests;
