//! What is gathered of a stream: records that wait to be written.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BytesMut};
use tokio::io::AsyncWrite;

use crate::seal::{RECORD, Seal};

/// Most bytes gathered before they are sent during a turn: four full TLS records, which go to the
/// socket as one write.
pub(super) const MOST: usize = 4 * RECORD;
pub(super) const FIRST: usize = 1024;

#[derive(Debug)]
pub(super) struct Gathering<T> {
    pub(super) stream: T,
    /// Less than a record, if the stream encrypts.
    pub(super) waiting: BytesMut,
    /// Bytes that waited when they were last sent, because the next turn will be similar.
    pub(super) usual: usize,
    /// Bytes that the stream has taken since its last flush.
    pub(super) unflushed: usize,
    /// A write found no room, and its writer waits.
    pub(super) refused: bool,
    /// An error of sending, which the library gets from its next call.
    pub(super) failure: Option<io::Error>,
    /// Bytes read since the turn began, and their limit.
    pub(super) read: usize,
    pub(super) most_read: usize,
}

// === impl Gathering ===

impl<T: AsyncWrite + Seal + Unpin> Gathering<T> {
    /// Sends after a turn. An error is stored for the connection, which is woken for it.
    pub(super) fn let_out(&mut self, cx: &mut Context<'_>) {
        self.read = 0;
        let before = self.held();
        let sent = if self.failure.is_some() { Poll::Pending } else { self.poll_send(cx) };
        if let Poll::Ready(Err(error)) = sent {
            self.failure = Some(error);
            cx.waker().wake_by_ref();
        } else if self.refused && self.held() < before {
            // The socket does not wake the task for the room made here.
            self.refused = false;
            cx.waker().wake_by_ref();
        }
        if self.waiting.is_empty() {
            // An idle connection holds no memory.
            self.waiting = BytesMut::new();
        }
    }

    /// Bytes written here that may not have reached the socket yet.
    pub(super) fn held(&self) -> usize {
        self.unflushed + self.waiting.len()
    }

    /// Passes all waiting bytes to the stream, and through it to the socket.
    pub(super) fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.waiting.is_empty() {
            // The rest after full records does not show how much waited before.
            self.usual = if self.unflushed > 0 { RECORD } else { self.waiting.len().max(FIRST) };
        }
        while !self.waiting.is_empty() {
            let sent = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.waiting))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.pass_on(sent);
        }
        if self.unflushed > 0 {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.unflushed = 0;
        }
        Poll::Ready(Ok(()))
    }

    /// The stream has taken this many of the waiting bytes.
    fn pass_on(&mut self, bytes: usize) {
        self.unflushed += bytes;
        if bytes == self.waiting.len() {
            self.waiting.clear(); // `advance` would not keep the space
        } else {
            self.waiting.advance(bytes);
        }
    }

    /// Takes as many of `bytes` as fit.
    pub(super) fn take(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(MOST.saturating_sub(self.held()));
        let sealed = self.seal(&bytes[..taken])?;
        let rest = &bytes[sealed..taken];
        if self.waiting.is_empty() && !rest.is_empty() {
            // To grow step by step would copy the existing bytes.
            self.waiting.reserve(rest.len().max(self.usual).min(MOST));
        }
        self.waiting.extend_from_slice(rest);
        Ok(taken)
    }

    /// Encrypts the records that `bytes` fill. Returns how many of the bytes these contain.
    fn seal(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let before = self.waiting.len();
        let full = (before + bytes.len()) / RECORD * RECORD;
        if full <= before {
            return Ok(0);
        }
        let sealed = self.stream.seal([&self.waiting, &bytes[..full - before]])?;
        let waited = sealed.min(before);
        self.pass_on(waited);
        self.unflushed += sealed - waited;
        Ok(sealed - waited)
    }

    /// Waits for room for at least one byte.
    pub(super) fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Err(failure));
        }
        if self.held() < MOST {
            return Poll::Ready(Ok(()));
        }
        let sent = self.poll_send(cx);
        self.refused = sent.is_pending();
        sent
    }
}
