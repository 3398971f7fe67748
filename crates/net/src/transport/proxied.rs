//! A stream inside a proxy's or a tunnel's.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

/// A stream that is more than a TCP connection.
pub struct Proxied {
    hop: Hop,
    /// Sent by the destination together with the proxy's answer, and not read yet.
    early: Bytes,
    /// Cancelled when the way is about to end.
    leaving: Option<CancellationToken>,
}

enum Hop {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Other(Box<dyn Io>),
}

/// What a stream has to be able to do.
pub trait Io: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static> Io for T {}

// === impl Proxied ===

impl Proxied {
    pub(crate) fn tcp(tcp: TcpStream, early: Bytes) -> Self {
        Self { hop: Hop::Tcp(tcp), early, leaving: None }
    }

    pub(crate) fn tls(tls: Box<TlsStream<TcpStream>>, early: Bytes) -> Self {
        Self { hop: Hop::Tls(tls), early, leaving: None }
    }

    pub(crate) fn other(stream: impl Io, leaving: Option<CancellationToken>) -> Self {
        Self { hop: Hop::Other(Box::new(stream)), early: Bytes::new(), leaving }
    }

    pub(crate) fn leaving(&self) -> Option<CancellationToken> {
        self.leaving.clone()
    }
}

/// Calls the same method on whichever stream it is.
macro_rules! either {
    ($self:expr, $stream:ident => $call:expr) => {
        match &mut $self.get_mut().hop {
            Hop::Tcp(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
            Hop::Tls(stream) => {
                let $stream = Pin::new(stream.as_mut());
                $call
            }
            Hop::Other(stream) => {
                let $stream = Pin::new(stream.as_mut());
                $call
            }
        }
    };
}

impl AsyncRead for Proxied {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.early.is_empty() {
            let length = self.early.len().min(buf.remaining());
            buf.put_slice(&self.early[..length]);
            self.early.advance(length);
            return Poll::Ready(Ok(()));
        }
        either!(self, stream => stream.poll_read(cx, buf))
    }
}

impl AsyncWrite for Proxied {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.hop {
            Hop::Tcp(stream) => stream.is_write_vectored(),
            Hop::Tls(stream) => stream.is_write_vectored(),
            Hop::Other(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_shutdown(cx))
    }
}
