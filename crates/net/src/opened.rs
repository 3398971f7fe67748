//! The result of a dial: a TCP connection, or a stream inside a proxy's or a tunnel's.
//!
//! A proxy without TLS that sent nothing after its response leaves a plain TCP connection, which is
//! used as one.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::large_reads::LargeReads;
use crate::transport::{Io, Proxied, Transport};

/// A byte stream to a member, before TLS.
pub enum Opened {
    Tcp(TcpStream),
    Proxied(Proxied),
}

// === impl Opened ===

impl Opened {
    pub(crate) fn through_tcp(tcp: TcpStream, early: Bytes) -> Self {
        if early.is_empty() { Self::Tcp(tcp) } else { Self::Proxied(Proxied::tcp(tcp, early)) }
    }

    pub(crate) fn through_tls(tls: Box<TlsStream<TcpStream>>, early: Bytes) -> Self {
        Self::Proxied(Proxied::tls(tls, early))
    }

    /// A stream that is not our own socket. `leaving` is cancelled when it is about to be cut.
    pub fn other(stream: impl Io, leaving: Option<CancellationToken>) -> Self {
        Self::Proxied(Proxied::other(stream, leaving))
    }

    /// The plain stream, for members without TLS.
    pub fn plain(self) -> Transport {
        match self {
            Self::Tcp(tcp) => Transport::Plain(tcp),
            Self::Proxied(proxied) => Transport::Proxied(Box::new(proxied)),
        }
    }

    /// Makes a TLS handshake with the member inside the stream, offering `alpn`.
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
