//! Opening a connection to a member: TCP, TLS, ALPN, within one deadline.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use http::uri::{Authority, Scheme};
use net::dial::{self, DialError};
use net::tls;
use net::transport::Transport;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

/// Where a member is and how it proves who it is.
pub struct Target {
    pub host: String,
    /// TCP port.
    pub port: u16,
    pub scheme: Scheme,
    pub authority: Authority,
    /// `authority` again, as the `Host` header of HTTP/1.1.
    pub host_header: HeaderValue,
    /// `None` only for `http` endpoints.
    pub tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    /// For TCP and TLS together.
    pub dial_timeout: Duration,
    /// Dials that may be under way at a time, upgrades' included.
    pub dials: Semaphore,
}

/// What [`Target::dials`] starts with: a member that answers takes more than this in the blink of an eye, one that does not must not
/// gather sockets.
pub const MAX_DIALS: usize = 64;

/// Why no connection came about. Texts start with `dial tcp`: clients of the Go cluster-gateway look for it.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error("dial tcp {address}: tls: {source}")]
    Tls { address: String, source: io::Error },
    #[error("dial tcp {address}: tls: handshake timeout after {after:?}")]
    TlsTimeout { address: String, after: Duration },
    #[error("dial tcp {address}: the member speaks no HTTP/1.1, which upgrades need")]
    NoHttp1 { address: String },
    #[error("dial tcp {address}: http2: {reason}")]
    Http2 { address: String, reason: String },
    #[error("dial tcp {address}: the member allows no request at all (SETTINGS_MAX_CONCURRENT_STREAMS is 0)")]
    NoStreams { address: String },
    #[error("dial tcp {address}: {limit} connections are open already")]
    Exhausted { address: String, limit: usize },
}

// === impl Target ===

impl Target {
    /// `host:port` for messages.
    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// For pooled requests: the member chooses between HTTP/2 and HTTP/1.1.
    pub async fn connect_any(&self) -> Result<Transport, ConnectError> {
        self.connect(&[tls::H2, tls::HTTP_11]).await
    }

    /// For upgrades: HTTP/1.1 and nothing else, since HTTP/2 cannot carry them (RFC 9113 §8.6).
    pub async fn connect_http1(&self) -> Result<Transport, ConnectError> {
        let transport = self.connect(&[tls::HTTP_11]).await?;
        if transport.alpn() == Some(tls::H2) {
            return Err(ConnectError::NoHttp1 { address: self.address() });
        }
        Ok(transport)
    }

    async fn connect(&self, alpn: &[&[u8]]) -> Result<Transport, ConnectError> {
        let deadline = Instant::now() + self.dial_timeout;
        let Ok(_dialling) = timeout_at(deadline, self.dials.acquire()).await else {
            return Err(DialError::Timeout { address: self.address() }.into());
        };
        let stream = dial::connect(&self.host, self.port, deadline).await?;
        let Some((config, name)) = &self.tls else {
            return Ok(Transport::Plain(stream));
        };
        let connector = TlsConnector::from(Arc::clone(config));
        let alpn = alpn.iter().map(|name| name.to_vec()).collect();
        let handshake = connector.with_alpn(alpn).connect(name.clone(), stream);
        match timeout_at(deadline, handshake).await {
            Ok(Ok(stream)) => Ok(Transport::Tls(Box::new(stream))),
            Ok(Err(source)) => Err(ConnectError::Tls { address: self.address(), source }),
            Err(_) => Err(ConnectError::TlsTimeout { address: self.address(), after: self.dial_timeout }),
        }
    }
}

// === impl ConnectError ===

impl ConnectError {
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Dial(error) => error.is_timeout(),
            Self::TlsTimeout { .. } => true,
            Self::Tls { .. }
            | Self::NoHttp1 { .. }
            | Self::Http2 { .. }
            | Self::NoStreams { .. }
            | Self::Exhausted { .. } => false,
        }
    }

    /// A word for the metric's label.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Dial(DialError::Resolve { .. } | DialError::NoAddress { .. }) => "dns",
            Self::Dial(error) if error.is_timeout() => "timeout",
            Self::Dial(_) => "refused",
            Self::Tls { .. } => "tls",
            Self::TlsTimeout { .. } => "timeout",
            Self::NoHttp1 { .. } | Self::Http2 { .. } | Self::NoStreams { .. } => "protocol",
            Self::Exhausted { .. } => "exhausted",
        }
    }
}
