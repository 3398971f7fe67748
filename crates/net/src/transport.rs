//! A byte stream to a member: TLS, or plain TCP if the operator allows it. Either may run inside a
//! proxy's or a tunnel's stream.

mod proxied;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::large_reads::LargeReads;

pub use self::proxied::{Io, Proxied};

/// One connection to a member. TLS is boxed, because its state is large and the enum is moved often
/// while connecting. Streams through a proxy or a tunnel have their own variants, so that direct
/// ones have no additional layer.
pub enum Transport {
    Tls(Box<TlsStream<LargeReads<TcpStream>>>),
    Plain(TcpStream),
    ProxiedTls(Box<TlsStream<LargeReads<Proxied>>>),
    Proxied(Box<Proxied>),
}

// === impl Transport ===

impl Transport {
    /// The protocol that TLS agreed on, if any.
    pub fn alpn(&self) -> Option<&[u8]> {
        match self {
            Self::Tls(stream) => stream.get_ref().1.alpn_protocol(),
            Self::ProxiedTls(stream) => stream.get_ref().1.alpn_protocol(),
            Self::Plain(_) | Self::Proxied(_) => None,
        }
    }

    /// Cancelled when the connection is about to be cut: nothing new may begin on it. `None` if
    /// there is no such notice.
    pub fn leaving(&self) -> Option<CancellationToken> {
        match self {
            Self::ProxiedTls(stream) => stream.get_ref().0.get_ref().leaving(),
            Self::Proxied(stream) => stream.leaving(),
            Self::Tls(_) | Self::Plain(_) => None,
        }
    }
}

impl AsyncRead for Transport {
    crate::forward!([Tls Plain ProxiedTls Proxied]: poll_read);
}

impl AsyncWrite for Transport {
    crate::forward!([Tls Plain ProxiedTls Proxied]: poll_write, poll_write_vectored, is_write_vectored, poll_flush, poll_shutdown);
}
