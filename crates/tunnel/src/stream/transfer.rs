//! Reads and writes of a stream.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::Reason;
use net::words;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::coop::poll_proceed;

use super::Stream;

/// Whatever ended the stream, the peer has not ended it cleanly.
pub(super) fn lost(error: &h2::Error) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, words::causes(error))
}

pub(super) fn was_reset(reason: Reason) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, format!("the stream was reset: {}", reason.description()))
}

impl AsyncRead for Stream {
    /// Costs as much of the task's budget as a socket's read. Otherwise a reader that reads until
    /// nothing is left may never end its turn: the link's driver may run on another thread, and its
    /// peer may send TLS records without content.
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let budget = ready!(poll_proceed(cx));
        let mut inbound = self.inbound.lock();
        if inbound.unread.is_empty() {
            match ready!(inbound.poll_data(cx)) {
                Some(data) => inbound.unread.push(data?),
                None => return Poll::Ready(Ok(())),
            }
        }
        budget.made_progress();
        inbound.take_unwaited();
        let before = buf.remaining();
        while let Some(piece) = inbound.unread.pop(buf.remaining()) {
            buf.put_slice(&piece);
            if buf.remaining() == 0 {
                break;
            }
        }
        inbound.release(before - buf.remaining());
        inbound.tell();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.inbound.lock().take_unwaited();
        let Poll::Ready(room) = self.poll_room(cx, buf.len()) else {
            self.inbound.lock().take_behind_writer();
            return Poll::Pending;
        };
        let room = room?;
        // Copied without the lock, which the link's driver takes for all of its streams.
        let data = Bytes::copy_from_slice(&buf[..room]);
        let data = self.inbound.lock().unsent(data);
        self.send(data)?;
        self.settle();
        Poll::Ready(Ok(room))
    }

    /// HTTP/2 sends as soon as it can: there is nothing to flush.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.finish())
    }
}
