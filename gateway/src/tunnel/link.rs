//! Makes one link to a tunnel-server: TCP, mutual TLS, HTTP/2.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use net::dial::{self, DialError};
use net::large_reads::LargeReads;
use net::tls;
use net::tls::client_files::FollowedClient;
use net::words;
use rustls_pki_types::ServerName;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tunnel::{Hop, Link, LinkError, Settings};

/// What every new link needs.
pub struct Linking {
    /// Trust in the tunnel-servers, and our client certificate.
    pub tls: Arc<FollowedClient>,
    pub settings: Settings,
    /// Timeout of one link, from TCP to SETTINGS.
    pub timeout: Duration,
}

/// Why there is no link. The texts begin like those of all dials.
#[derive(Debug, thiserror::Error)]
pub enum Unlinked {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error("dial tcp {address}: tls: {}", words::io(.source))]
    Tls { address: SocketAddr, source: io::Error },
    #[error("dial tcp {address}: tls: handshake timeout")]
    TlsTimeout { address: SocketAddr },
    #[error("dial tcp {address}: it does not support HTTP/2, so it is not the frontend port of a tunnel-server")]
    NoHttp2 { address: SocketAddr },
    #[error("dial tcp {address}: {source}")]
    Link { address: SocketAddr, source: LinkError },
    #[error("dial tcp {address}: {limit} links are full")]
    Full { address: SocketAddr, limit: usize },
    #[error("dial tcp {address}: the task that makes links ended early")]
    Gone { address: SocketAddr },
}

// === impl Linking ===

impl Linking {
    /// Links to `address`, whose certificate must have `name`. Returns the link and the generation
    /// of its files. The link belongs to the current runtime.
    pub async fn link(&self, address: SocketAddr, name: &ServerName<'static>) -> Result<(Link, u64), Unlinked> {
        let deadline = Instant::now() + self.timeout;
        let generation = self.tls.current();
        let tcp = dial::connect(&address.ip().to_string(), address.port(), deadline).await?;
        let connector = TlsConnector::from(Arc::clone(&generation.config));
        let connector = connector.with_alpn(vec![tls::H2.to_vec()]);
        let connecting = connector.connect_with(name.clone(), LargeReads::new(tcp), |tls| {
            tls.set_buffer_limit(Some(Settings::TLS_BUFFER));
        });
        let stream = match timeout_at(deadline, connecting).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(source)) => return Err(Unlinked::Tls { address, source }),
            Err(_) => return Err(Unlinked::TlsTimeout { address }),
        };
        if stream.get_ref().1.alpn_protocol() != Some(tls::H2) {
            return Err(Unlinked::NoHttp2 { address });
        }
        match timeout_at(deadline, Link::start(stream, &self.settings, Hop::Server)).await {
            Ok(Ok(link)) => Ok((link, generation.number)),
            Ok(Err(source)) => Err(Unlinked::Link { address, source }),
            Err(_) => Err(Unlinked::Link { address, source: LinkError::HandshakeTimeout(self.timeout) }),
        }
    }
}

// === impl Unlinked ===

impl Unlinked {
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Dial(error) => error.is_timeout(),
            Self::TlsTimeout { .. } | Self::Link { source: LinkError::HandshakeTimeout(_), .. } => true,
            _ => false,
        }
    }
}
