//! From the stream to the socket.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::Stream;
use crate::budget::Account;
use crate::inbox::Inbox;

/// Writes what the stream brings; its window is given back as the socket takes it.
#[derive(Default)]
pub(super) struct Inward {
    inbox: Inbox,
    unflushed: bool,
    /// The stream's end was passed on as FIN.
    pub done: bool,
}

// === impl Inward ===

impl Inward {
    /// The stream brings no more.
    pub fn ended(&self) -> bool {
        self.inbox.ended
    }

    pub fn poll<S: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
        socket: &mut S,
        account: &Account,
        moved: &AtomicU64,
    ) -> io::Result<()> {
        if self.done {
            return Ok(());
        }
        self.inbox.fill(cx, stream, account)?;
        match self.poll_write(cx, stream, socket, account, moved) {
            Poll::Ready(result) => result,
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
        if self.inbox.ended {
            ready!(std::pin::pin!(socket.shutdown()).poll(cx))?;
            self.done = true;
        }
        Poll::Ready(Ok(()))
    }
}
