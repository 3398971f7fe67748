//! Adversarial IO: a wrapper that makes any byte stream behave as badly as the traits allow.
//!
//! One byte at a time, `Pending` without a reason (with the wake-up the contract asks for), errors
//! and ends after an exact number of bytes, and no vectored writes. Each knob is off until set.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pin_project! {
    /// A byte stream with faults. All numbers are bytes, counted from the start of the stream.
    #[derive(Debug)]
    pub struct Faulty<T> {
        #[pin]
        inner: T,
        read: Direction,
        write: Direction,
        end_of_reads: Option<u64>,
        vectored: bool,
    }
}

/// The faults and the progress of one direction.
#[derive(Debug, Default)]
struct Direction {
    chunk: Option<usize>,
    failure: Option<(u64, io::ErrorKind)>,
    pending_between: bool,
    was_pending: bool,
    done: u64,
}

// === impl Faulty ===

impl<T> Faulty<T> {
    /// `inner` without any fault yet.
    pub fn new(inner: T) -> Self {
        Self { inner, read: Direction::default(), write: Direction::default(), end_of_reads: None, vectored: true }
    }

    /// Moves at most `bytes` in one read and in one write.
    #[must_use]
    pub fn chunks(mut self, bytes: usize) -> Self {
        assert!(bytes > 0, "a chunk of no bytes means end of file");
        self.read.chunk = Some(bytes);
        self.write.chunk = Some(bytes);
        self
    }

    /// Answers every other poll with `Pending`, waking the task at once.
    #[must_use]
    pub fn spurious_pending(mut self) -> Self {
        self.read.pending_between = true;
        self.write.pending_between = true;
        self
    }

    /// Fails every read after `bytes` were read.
    #[must_use]
    pub fn fail_reads_after(mut self, bytes: u64, kind: io::ErrorKind) -> Self {
        self.read.failure = Some((bytes, kind));
        self
    }

    /// Fails every write after `bytes` were written.
    #[must_use]
    pub fn fail_writes_after(mut self, bytes: u64, kind: io::ErrorKind) -> Self {
        self.write.failure = Some((bytes, kind));
        self
    }

    /// Ends the stream after `bytes` were read, even if the other side sends more.
    #[must_use]
    pub fn close_reads_after(mut self, bytes: u64) -> Self {
        self.end_of_reads = Some(bytes);
        self
    }

    /// Denies vectored writes; a caller that tries anyway gets its first slice written.
    #[must_use]
    pub fn without_vectored_writes(mut self) -> Self {
        self.vectored = false;
        self
    }

    /// Bytes read so far.
    pub fn bytes_read(&self) -> u64 {
        self.read.done
    }

    /// Bytes written so far.
    pub fn bytes_written(&self) -> u64 {
        self.write.done
    }

    /// The stream below.
    pub fn into_inner(self) -> T {
        self.inner
    }
}

impl<T: AsyncRead> AsyncRead for Faulty<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.project();
        let mut allowed = ready!(this.read.allowance(cx, buf.remaining()))?;
        if let Some(end) = this.end_of_reads {
            allowed = allowed.min(usize::try_from(end.saturating_sub(this.read.done)).unwrap_or(usize::MAX));
        }
        if allowed == 0 {
            return Poll::Ready(Ok(()));
        }
        let mut part = buf.take(allowed);
        ready!(this.inner.poll_read(cx, &mut part))?;
        let (filled, initialized) = (part.filled().len(), part.initialized().len());
        debug_assert!(filled <= initialized, "ReadBuf keeps this invariant");
        let bytes = part.filled().to_vec();
        buf.put_slice(&bytes);
        this.read.done += bytes.len() as u64;
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite> AsyncWrite for Faulty<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.project();
        let allowed = ready!(this.write.allowance(cx, buf.len()))?;
        let written = ready!(this.inner.poll_write(cx, &buf[..allowed]))?;
        this.write.done += written as u64;
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let limited = !self.vectored || self.write.chunk.is_some() || self.write.failure.is_some();
        if limited {
            let first = bufs.iter().find(|buf| !buf.is_empty()).map_or(&[][..], |buf| buf);
            return self.poll_write(cx, first);
        }
        let this = self.project();
        ready!(this.write.allowance(cx, 1))?;
        let written = ready!(this.inner.poll_write_vectored(cx, bufs))?;
        this.write.done += written as u64;
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.vectored && self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_shutdown(cx)
    }
}

// === impl Direction ===

impl Direction {
    /// How many of `wanted` bytes may be moved now.
    fn allowance(&mut self, cx: &Context<'_>, wanted: usize) -> Poll<io::Result<usize>> {
        if self.pending_between && !std::mem::replace(&mut self.was_pending, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.was_pending = false;
        let mut allowed = self.chunk.map_or(wanted, |chunk| wanted.min(chunk));
        if let Some((after, kind)) = self.failure {
            let left = after.saturating_sub(self.done);
            if left == 0 {
                return Poll::Ready(Err(kind.into()));
            }
            allowed = allowed.min(usize::try_from(left).unwrap_or(usize::MAX));
        }
        Poll::Ready(Ok(allowed))
    }
}

#[cfg(test)]
mod tests;
