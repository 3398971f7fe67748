//! One HTTP/2 stream as something to read and write.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{RecvStream, SendStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Longest DATA frame written.
const FRAME: usize = 64 << 10;

/// Dropping it resets the stream unless it was shut down.
pub struct H2Stream {
    send: SendStream<Bytes>,
    receive: RecvStream,
    unread: Bytes,
}

/// HTTP/2 settings of callers: windows that never limit a tunnel.
pub fn client() -> h2::client::Builder {
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(1 << 20).initial_connection_window_size((1 << 31) - 1).max_frame_size(64 << 10);
    builder.enable_push(false);
    builder
}

// === impl H2Stream ===

impl H2Stream {
    pub fn new(send: SendStream<Bytes>, receive: RecvStream) -> Self {
        Self { send, receive, unread: Bytes::new() }
    }
}

impl AsyncRead for H2Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.unread.is_empty() {
            match ready!(this.receive.poll_data(cx)) {
                None => return Poll::Ready(Ok(())),
                Some(data) => this.unread = data.map_err(io::Error::other)?,
            }
        }
        let data = this.unread.split_to(this.unread.len().min(buffer.remaining()));
        buffer.put_slice(&data);
        let released = this.receive.flow_control().release_capacity(data.len());
        Poll::Ready(released.map_err(io::Error::other))
    }
}

impl AsyncWrite for H2Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let send = &mut self.send;
        send.reserve_capacity(data.len().min(FRAME));
        while send.capacity() == 0 {
            match ready!(send.poll_capacity(cx)) {
                None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
                Some(more) => _ = more.map_err(io::Error::other)?,
            }
        }
        let length = data.len().min(FRAME).min(send.capacity());
        send.send_data(Bytes::copy_from_slice(&data[..length]), false).map_err(io::Error::other)?;
        Poll::Ready(Ok(length))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.send.send_data(Bytes::new(), true).map_err(io::Error::other))
    }
}
