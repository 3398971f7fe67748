//! A stream inside a proxy's or a tunnel's.

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::prefixed::Prefixed;

/// A stream that is more than a TCP connection.
pub struct Proxied {
    /// Bytes of the destination that came with the proxy's response come first.
    stream: Prefixed<Hop>,
    /// Cancelled when the stream is about to be cut.
    leaving: Option<CancellationToken>,
}

enum Hop {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Other(Box<dyn Io>),
}

/// The abilities that a stream needs.
pub trait Io: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static> Io for T {}

// === impl Proxied ===

impl Proxied {
    pub(crate) fn tcp(tcp: TcpStream, early: Bytes) -> Self {
        Self { stream: Prefixed::new(Hop::Tcp(tcp), early), leaving: None }
    }

    pub(crate) fn tls(tls: Box<TlsStream<TcpStream>>, early: Bytes) -> Self {
        Self { stream: Prefixed::new(Hop::Tls(tls), early), leaving: None }
    }

    pub(crate) fn other(stream: impl Io, leaving: Option<CancellationToken>) -> Self {
        Self { stream: Prefixed::new(Hop::Other(Box::new(stream)), Bytes::new()), leaving }
    }

    pub(crate) fn leaving(&self) -> Option<CancellationToken> {
        self.leaving.clone()
    }
}

impl AsyncRead for Proxied {
    crate::forward!(stream: poll_read);
}

impl AsyncWrite for Proxied {
    crate::forward!(stream: poll_write, poll_write_vectored, is_write_vectored, poll_flush, poll_shutdown);
}

// === impl Hop ===

impl AsyncRead for Hop {
    crate::forward!([Tcp Tls Other]: poll_read);
}

impl AsyncWrite for Hop {
    crate::forward!([Tcp Tls Other]: poll_write, poll_write_vectored, is_write_vectored, poll_flush, poll_shutdown);
}
