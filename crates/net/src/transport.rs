//! A byte stream to a member: TLS, or plain TCP where the operator allowed it; either may run inside a proxy's or a tunnel's stream.

mod proxied;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::large_reads::LargeReads;

pub use self::proxied::{Io, Proxied};

/// One connection to a member. TLS is boxed: its state is large and the enum is moved about while connecting. What comes through a
/// proxy or a tunnel has variants of its own, so that the direct way has no further layer.
pub enum Transport {
    Tls(Box<TlsStream<LargeReads<TcpStream>>>),
    Plain(TcpStream),
    ProxiedTls(Box<TlsStream<LargeReads<Proxied>>>),
    Proxied(Box<Proxied>),
}

// === impl Transport ===

impl Transport {
    /// The protocol TLS agreed on, if any.
    pub fn alpn(&self) -> Option<&[u8]> {
        match self {
            Self::Tls(stream) => stream.get_ref().1.alpn_protocol(),
            Self::ProxiedTls(stream) => stream.get_ref().1.alpn_protocol(),
            Self::Plain(_) | Self::Proxied(_) => None,
        }
    }

    /// Cancelled when the way is about to be cut: nothing new should be begun on it. `None` where nobody would tell.
    pub fn leaving(&self) -> Option<CancellationToken> {
        match self {
            Self::ProxiedTls(stream) => stream.get_ref().0.get_ref().leaving(),
            Self::Proxied(stream) => stream.leaving(),
            Self::Tls(_) | Self::Plain(_) => None,
        }
    }
}

/// Calls the same method on whichever stream it is.
macro_rules! either {
    ($self:expr, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Transport::Tls(stream) => {
                let $stream = Pin::new(stream.as_mut());
                $call
            }
            Transport::Plain(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
            Transport::ProxiedTls(stream) => {
                let $stream = Pin::new(stream.as_mut());
                $call
            }
            Transport::Proxied(stream) => {
                let $stream = Pin::new(stream.as_mut());
                $call
            }
        }
    };
}

impl AsyncRead for Transport {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_read(cx, buf))
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_shutdown(cx))
    }

    // Without these two, h2 copies every payload into one buffer instead of handing it to the socket.
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tls(stream) => stream.is_write_vectored(),
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::ProxiedTls(stream) => stream.is_write_vectored(),
            Self::Proxied(stream) => stream.is_write_vectored(),
        }
    }
}
