//! Clients that hide nothing: HTTP/1.1 by hand and raw HTTP/2, over TLS or plain TCP, with or
//! without a client certificate. Tests with a protocol of their own use the same dial.
//!
//! They retry nothing, follow nothing, pool nothing and decode nothing. Every wait is bounded by
//! [`WAIT`](crate::wait::WAIT), or where [`H2Options`] say so by a longer limit.

mod h1;
mod h2;

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http_body::Body;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub use self::h1::{H1Connection, H1Error, H1Head};
pub use self::h2::{H2Body, H2Connection, H2Exchange, H2Options, H2Response, H2Upload};

use crate::pki::{ALPN_H1, ALPN_H2, Issued, Trust, client_config};
use crate::wait::within;

/// A byte stream of any kind.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A byte stream of any kind, owned.
pub type BoxedIo = Box<dyn Io>;

/// Where and how to connect. Each call that connects opens a new connection.
#[derive(Clone, Debug)]
pub struct Client {
    address: SocketAddr,
    source: Option<IpAddr>,
    tls: Option<Arc<ClientConfig>>,
    server_name: ServerName<'static>,
    h2: H2Options,
}

// === impl Client ===

impl Client {
    /// TLS to `address`, expecting the name `localhost`, presenting `identity` if given.
    pub fn new(address: SocketAddr, trust: Trust<'_>, identity: Option<&Issued>) -> Self {
        Self::with_config(address, client_config(trust, identity, &[]))
    }

    /// TLS as `config` says, but for its ALPN: each connection offers its own protocols.
    pub fn with_config(address: SocketAddr, config: Arc<ClientConfig>) -> Self {
        Self { tls: Some(config), ..Self::plain(address) }
    }

    /// Plain TCP to `address`. HTTP/2 is spoken with prior knowledge.
    pub fn plain(address: SocketAddr) -> Self {
        let server_name = ServerName::try_from("localhost").expect("a valid name");
        Self { address, source: None, tls: None, server_name, h2: H2Options::default() }
    }

    /// Expects (and sends as SNI) another name.
    #[must_use]
    pub fn server_name(mut self, name: &str) -> Self {
        self.server_name = ServerName::try_from(name.to_owned()).expect("a DNS name or an IP address");
        self
    }

    /// Opens HTTP/2 connections with these settings.
    #[must_use]
    pub fn h2_options(mut self, options: H2Options) -> Self {
        self.h2 = options;
        self
    }

    /// Connects from this address of the machine, of which loopback has many.
    #[must_use]
    pub fn from_address(mut self, source: IpAddr) -> Self {
        self.source = Some(source);
        self
    }

    /// The address connected to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Opens a connection that offers `alpn` (nothing when empty) and returns its bytes.
    pub async fn raw(&self, alpn: &[&str]) -> io::Result<BoxedIo> {
        Ok(self.connect(alpn).await?.0)
    }

    /// Opens an HTTP/1.1 connection, offering only that.
    pub async fn h1(&self) -> io::Result<H1Connection> {
        let (io, selected) = self.connect(ALPN_H1).await?;
        if selected.as_deref() == Some(b"h2") {
            return Err(io::Error::other("the server selected h2, which was not offered"));
        }
        Ok(H1Connection::over(io))
    }

    /// Opens an HTTP/2 connection, offering only that; an error if the server does not select it.
    pub async fn h2(&self) -> io::Result<H2Connection> {
        let (io, selected) = self.connect(ALPN_H2).await?;
        if self.tls.is_some() && selected.as_deref() != Some(b"h2") {
            return Err(io::Error::other(format!("the server selected {selected:?} instead of h2")));
        }
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        H2Connection::over(io, format!("{scheme}://{}", self.address), self.h2).await.map_err(io::Error::other)
    }

    /// Opens an HTTP/1.1 connection of hyper, for tests that do not look at its bytes. A connection
    /// that is not there in time is an error, which callers repeat or count, and no panic.
    pub async fn http1<B>(&self) -> io::Result<http1::SendRequest<B>>
    where
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        let (io, _) = self.in_time(self.open(ALPN_H1)).await?;
        let (sender, connection) = http1::handshake(TokioIo::new(io)).await.map_err(io::Error::other)?;
        tokio::spawn(connection); // ends with the sender and the body of the last answer
        Ok(sender)
    }

    /// Opens a TLS connection that offers `alpn` (nothing when empty), for other protocols than
    /// HTTP and to see what was negotiated. As with [`Client::http1`], a delay is an error.
    ///
    /// # Panics
    ///
    /// If this is a client of plain TCP.
    pub async fn tls(&self, alpn: &[&str]) -> io::Result<TlsStream<TcpStream>> {
        let config = self.tls.as_deref().expect("a client with TLS");
        self.in_time(self.handshake(config, alpn)).await
    }

    async fn connect(&self, alpn: &[&str]) -> io::Result<(BoxedIo, Option<Vec<u8>>)> {
        within(self.h2.wait, format!("a connection to {}", self.address), self.open(alpn)).await
    }

    async fn in_time<T>(&self, opening: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let wait = self.h2.wait;
        tokio::time::timeout(wait, opening).await.unwrap_or_else(|_| {
            let late = format!("no connection to {} within {wait:?}", self.address);
            Err(io::Error::new(io::ErrorKind::TimedOut, late))
        })
    }

    /// Without a limit: the bytes, and the protocol that the server selected.
    async fn open(&self, alpn: &[&str]) -> io::Result<(BoxedIo, Option<Vec<u8>>)> {
        let Some(config) = &self.tls else {
            return Ok((Box::new(self.dial().await?) as BoxedIo, None));
        };
        let tls = self.handshake(config, alpn).await?;
        let selected = tls.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        Ok((Box::new(tls) as BoxedIo, selected))
    }

    async fn handshake(&self, config: &ClientConfig, alpn: &[&str]) -> io::Result<TlsStream<TcpStream>> {
        let mut config = config.clone();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        let tcp = self.dial().await?;
        TlsConnector::from(Arc::new(config)).connect(self.server_name.clone(), tcp).await
    }

    async fn dial(&self) -> io::Result<TcpStream> {
        let tcp = match self.source {
            Some(source) => {
                let socket = if source.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
                socket.bind((source, 0).into())?;
                socket.connect(self.address).await?
            }
            None => TcpStream::connect(self.address).await?,
        };
        tcp.set_nodelay(true)?;
        Ok(tcp)
    }
}

#[cfg(test)]
mod tests;
