//! The direction from the stream to the socket.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::BrokenSide;
use crate::Stream;
use crate::gauge::Account;
use crate::inbox::Inbox;

/// Writes what the stream brings, and gives its window back as the socket takes it.
#[derive(Default)]
pub(super) struct Inward {
    inbox: Inbox,
    unflushed: bool,
    /// The stream has broken: what it brought is still written, but no FIN follows.
    cut: bool,
    /// The stream's end was passed on as FIN.
    pub done: bool,
}

// === impl Inward ===

impl Inward {
    /// Whether the stream brings no more.
    pub fn ended(&self) -> bool {
        self.inbox.ended
    }

    /// Whether nothing more will be written.
    pub fn is_over(&self) -> bool {
        let brings_no_more = self.cut && (self.inbox.broken || self.inbox.ended);
        self.done || brings_no_more && self.inbox.queue.is_empty() && !self.unflushed
    }

    /// Bytes that the socket has not taken.
    pub fn held(&self) -> u64 {
        self.inbox.queue.held() as u64
    }

    /// Called when the stream has broken.
    pub fn cut(&mut self) {
        self.cut = true;
    }

    /// Called when the socket takes no more.
    pub fn discard(&mut self, stream: &mut Stream, account: &Account) {
        self.inbox.discard(stream, account);
        self.done = true;
    }

    pub fn poll<S: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
        socket: &mut S,
        account: &Account,
        moved: &AtomicU64,
    ) -> Result<(), BrokenSide> {
        if self.done {
            return Ok(());
        }
        let filled = self.inbox.fill(cx, stream, account);
        if !self.cut {
            filled.map_err(BrokenSide::Stream)?;
        }
        match self.poll_write(cx, stream, socket, account, moved) {
            Poll::Ready(result) => result.map_err(BrokenSide::Socket),
            Poll::Pending => Ok(()),
        }
    }

    fn poll_write<S: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
        socket: &mut S,
        account: &Account,
        moved: &AtomicU64,
    ) -> Poll<io::Result<()>> {
        while let Some(piece) = self.inbox.queue.front() {
            let written = ready!(Pin::new(&mut *socket).poll_write(cx, piece))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.inbox.queue.advance(written);
            self.unflushed = true;
            stream.release(written);
            account.give(written);
            moved.fetch_add(written as u64, Ordering::Relaxed);
        }
        if self.unflushed {
            // TLS buffers: without this the socket's peer would wait for bytes that never leave.
            ready!(Pin::new(&mut *socket).poll_flush(cx))?;
            self.unflushed = false;
        }
        if self.inbox.ended && !self.cut {
            ready!(std::pin::pin!(socket.shutdown()).poll(cx))?;
            self.done = true;
        }
        Poll::Ready(Ok(()))
    }
}
