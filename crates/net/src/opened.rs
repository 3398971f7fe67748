//! What a dial opens: a TCP connection, or a stream inside a proxy's or a tunnel's.
//!
//! A proxy in the clear that sent nothing beyond its answer leaves a TCP connection like any other, and it is used as one.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::large_reads::LargeReads;
use crate::transport::Transport;

/// A byte stream to a member, before TLS.
pub enum Opened {
    Tcp(TcpStream),
    Proxied(Proxied),
}

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

// === impl Opened ===

impl Opened {
    pub(super) fn through_tcp(tcp: TcpStream, early: Bytes) -> Self {
        if early.is_empty() {
            Self::Tcp(tcp)
        } else {
            Self::Proxied(Proxied { hop: Hop::Tcp(tcp), early, leaving: None })
        }
    }

    pub(super) fn through_tls(tls: Box<TlsStream<TcpStream>>, early: Bytes) -> Self {
        Self::Proxied(Proxied { hop: Hop::Tls(tls), early, leaving: None })
    }

    /// A stream that is no socket of ours. `leaving` is cancelled when it is about to be cut.
    pub fn other(stream: impl Io, leaving: Option<CancellationToken>) -> Self {
        Self::Proxied(Proxied { hop: Hop::Other(Box::new(stream)), early: Bytes::new(), leaving })
    }

    /// The stream as it is, for members without TLS.
    pub fn plain(self) -> Transport {
        match self {
            Self::Tcp(tcp) => Transport::Plain(tcp),
            Self::Proxied(proxied) => Transport::Proxied(Box::new(proxied)),
        }
    }

    /// Speaks TLS with the member inside the stream, offering `alpn`.
    pub async fn secure(
        self,
        config: &Arc<ClientConfig>,
        name: ServerName<'static>,
        alpn: &[&[u8]],
    ) -> io::Result<Transport> {
        let connector = TlsConnector::from(Arc::clone(config));
        let connector = connector.with_alpn(alpn.iter().map(|name| name.to_vec()).collect());
        match self {
            Self::Tcp(tcp) => Ok(Transport::Tls(Box::new(connector.connect(name, LargeReads::new(tcp)).await?))),
            Self::Proxied(proxied) => {
                Ok(Transport::ProxiedTls(Box::new(connector.connect(name, LargeReads::new(proxied)).await?)))
            }
        }
    }
}

// === impl Proxied ===

impl Proxied {
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
