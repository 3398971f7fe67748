//! Forward proxies before a member: HTTP `CONNECT`, plain or inside TLS, and SOCKS5.
//!
//! A proxy opens a byte stream, and sees only the TLS with the member inside it. The proxy resolves
//! names. Everything happens before the dial's deadline, the size of a proxy's response is limited,
//! and no error contains a credential.

mod error;
mod http;
mod socks;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use secrecy::SecretString;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

pub use self::error::{ProxyError, Refusal};
use crate::dial::HostPort;
pub use crate::opened::Opened;
use crate::{dial, tls};

/// A proxy, and our credentials for it.
#[derive(Debug)]
pub struct Proxy {
    pub protocol: Protocol,
    /// DNS name or IP address, IPv6 without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    pub credentials: Option<Credentials>,
}

/// The protocol of a proxy.
#[derive(Debug)]
pub enum Protocol {
    /// `CONNECT` (RFC 9110 §9.3.6) without TLS.
    Http,
    /// `CONNECT` inside TLS, with the trust of the configuration.
    Https(Arc<ClientConfig>),
    /// RFC 1928.
    Socks5,
}

/// User and password: `Proxy-Authorization: Basic` (RFC 7617), or RFC 1929.
#[derive(Debug)]
pub struct Credentials {
    pub user: String,
    pub password: SecretString,
}

// === impl Proxy ===

impl Proxy {
    /// A byte stream to `host:port` through this proxy, before `deadline`.
    pub async fn connect(&self, host: &str, port: u16, deadline: Instant) -> Result<Opened, ProxyError> {
        let destination = HostPort { host, port };
        let opened = async {
            let tcp = dial::connect(&self.host, self.port, deadline).await.map_err(Refusal::Unreachable)?;
            timeout_at(deadline, self.ask(tcp, destination)).await.unwrap_or(Err(Refusal::Timeout))
        };
        opened.await.map_err(|refusal| ProxyError {
            destination: destination.to_string(),
            proxy: self.to_string(),
            refusal,
        })
    }

    /// Asks on `stream` as on a connection to the proxy itself, for tests with generated responses.
    /// Returns the bytes that followed the response.
    #[doc(hidden)]
    pub async fn ask_on<S>(&self, stream: &mut S, host: &str, port: u16) -> Result<Bytes, Refusal>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let (destination, credentials) = (HostPort { host, port }, self.credentials.as_ref());
        match &self.protocol {
            Protocol::Http | Protocol::Https(_) => http::connect(stream, destination, credentials).await,
            Protocol::Socks5 => socks::connect(stream, destination, credentials).await.map(|()| Bytes::new()),
        }
    }

    async fn ask(&self, mut tcp: TcpStream, destination: HostPort<'_>) -> Result<Opened, Refusal> {
        let credentials = self.credentials.as_ref();
        match &self.protocol {
            Protocol::Http => {
                let early = http::connect(&mut tcp, destination, credentials).await?;
                Ok(Opened::through_tcp(tcp, early))
            }
            Protocol::Https(config) => {
                let name = ServerName::try_from(self.host.clone()).map_err(|_| Refusal::Name)?;
                // Only HTTP/1.1 is implemented here, and a proxy that may choose might choose
                // HTTP/2.
                let alpn = vec![tls::HTTP_11.to_vec()];
                let connector = TlsConnector::from(Arc::clone(config));
                let handshake = connector.with_alpn(alpn).connect(name, tcp);
                let mut stream = Box::new(handshake.await.map_err(Refusal::Tls)?);
                let early = http::connect(&mut stream, destination, credentials).await?;
                Ok(Opened::through_tls(stream, early))
            }
            Protocol::Socks5 => {
                socks::connect(&mut tcp, destination, credentials).await?;
                Ok(Opened::Tcp(tcp))
            }
        }
    }
}

/// Without user and password.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match &self.protocol {
            Protocol::Http => "http",
            Protocol::Https(_) => "https",
            Protocol::Socks5 => "socks5",
        };
        write!(f, "{scheme}://{}", HostPort { host: &self.host, port: self.port })
    }
}

#[cfg(test)]
mod tests;
