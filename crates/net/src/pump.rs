//! Copies bytes in both directions between two connections that have left HTTP.
//!
//! One future drives both directions. Each has its own buffer, which starts small and grows with
//! traffic, so that idle upgrades stay cheap. When one side ends, the bytes already read from it
//! are delivered, then both sides are shut down. An aggregating API server does the same
//! (`k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go`), so no client can rely on half-open
//! connections. But a lost tail would be a bug, because the last frame has the exit status of an
//! exec.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::timeout;

const FIRST_BUFFER: usize = 4 * 1024;
const LARGEST_BUFFER: usize = 64 * 1024;
/// Timeout for the `close_notify` of a TLS peer that no longer reads.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes moved in each direction, current while the pump runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    pub a_to_b: u64,
    pub b_to_a: u64,
}

/// Copies until either side ends or fails, then closes both. `moved` is current even if the future
/// is dropped.
///
/// # Errors
/// The first IO error of either direction. A reset by the peer after its data were delivered is an
/// error too: the caller decides what is worth a log line.
pub async fn pump<A, B>(a: &mut A, b: &mut B, moved: &mut Moved) -> io::Result<()>
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    pump_observed(a, b, moved, |_, _| Ok(())).await
}

/// [`pump`], which calls `observe` after each turn with the number of bytes in its buffers. An
/// error of `observe` ends the copying.
///
/// # Errors
/// Returns the errors of [`pump`] and of `observe`.
pub async fn pump_observed<A, B>(
    a: &mut A,
    b: &mut B,
    moved: &mut Moved,
    mut observe: impl FnMut(&mut Context<'_>, usize) -> io::Result<()>,
) -> io::Result<()>
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    let mut forth = Direction::default();
    let mut back = Direction::default();
    let mut back_first = true;
    let outcome = poll_fn(|cx| {
        // They take turns: the first may use up the task's budget in every poll, and then nothing
        // is left for the other.
        back_first = !back_first;
        // Polls both directions before it reports an end, so that data which arrived together with
        // the other side's end can still be sent.
        let early = if back_first { Some(back.poll(cx, b, a)) } else { None };
        let first = forth.poll(cx, a, b);
        let second = early.unwrap_or_else(|| back.poll(cx, b, a));
        moved.a_to_b = forth.moved;
        moved.b_to_a = back.moved;
        match (first, second) {
            (Poll::Ready(end), _) | (_, Poll::Ready(end)) => Poll::Ready(end),
            (Poll::Pending, Poll::Pending) => match observe(cx, forth.buffer.len() + back.buffer.len()) {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            },
        }
    })
    .await;
    let (closed_a, closed_b) = (timeout(SHUTDOWN_TIMEOUT, a.shutdown()), timeout(SHUTDOWN_TIMEOUT, b.shutdown()));
    // Together and with a timeout: a peer that never reads must block neither its partner nor us.
    let _ = tokio::join!(closed_a, closed_b);
    outcome
}

/// One direction of a pump.
#[derive(Default)]
struct Direction {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    unflushed: bool,
    reader_ended: bool,
    moved: u64,
}

// === impl Direction ===

impl Direction {
    /// Moves all that can be moved. Ready when the reader has ended and all its bytes are written
    /// and flushed.
    fn poll<R, W>(&mut self, cx: &mut Context<'_>, reader: &mut R, writer: &mut W) -> Poll<io::Result<()>>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        loop {
            ready!(self.poll_write(cx, writer))?;
            if self.reader_ended {
                ready!(Pin::new(&mut *writer).poll_flush(cx))?;
                return Poll::Ready(Ok(()));
            }
            match self.poll_read(cx, reader) {
                Poll::Ready(read) => read?,
                Poll::Pending => {
                    // TLS writers buffer: without this flush the peer would wait for bytes that are
                    // never sent.
                    if self.unflushed {
                        ready!(Pin::new(&mut *writer).poll_flush(cx))?;
                        self.unflushed = false;
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    fn poll_read<R: AsyncRead + Unpin>(&mut self, cx: &mut Context<'_>, reader: &mut R) -> Poll<io::Result<()>> {
        if self.buffer.is_empty() {
            self.buffer.resize(FIRST_BUFFER, 0);
        }
        let mut buffer = ReadBuf::new(&mut self.buffer);
        ready!(Pin::new(reader).poll_read(cx, &mut buffer))?;
        (self.start, self.end) = (0, buffer.filled().len());
        self.reader_ended = self.end == 0;
        Poll::Ready(Ok(()))
    }

    fn poll_write<W: AsyncWrite + Unpin>(&mut self, cx: &mut Context<'_>, writer: &mut W) -> Poll<io::Result<()>> {
        while self.start < self.end {
            let written = ready!(Pin::new(&mut *writer).poll_write(cx, &self.buffer[self.start..self.end]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.start += written;
            self.moved += written as u64;
            self.unflushed = true;
        }
        // A full buffer means that more is coming, so the next read may take more.
        if self.end == self.buffer.len() && self.buffer.len() < LARGEST_BUFFER && self.end > 0 {
            self.buffer.resize(self.buffer.len() * 4, 0);
        }
        (self.start, self.end) = (0, 0);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests;
