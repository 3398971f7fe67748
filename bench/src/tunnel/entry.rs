//! The entry of a tunnel, and the connections through it.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use h2::client::SendRequest;
use http::{Method, Request};
use kit::client::Io;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Mutex;
use tokio_rustls::TlsConnector;

use super::connect::connect;
use super::grpc::{self, Grpc};
use super::h2_stream::{self, H2Stream};

/// Limit for one dial, everything included.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two tries of a Unix socket whose queue is full: it does not make callers wait, as TCP
/// does.
const FULL: Duration = Duration::from_millis(1);

pub enum Entry {
    /// No tunnel at all.
    Direct,
    /// Everything that comes to a Unix socket goes to one destination.
    Relay(PathBuf),
    /// HTTP/1.1 CONNECT on a Unix socket.
    Connect(PathBuf),
    /// HTTP/2 CONNECT over mutual TLS, as the gateway enters.
    Link(Link),
    /// konnectivity's gRPC on a Unix socket.
    Grpc(PathBuf),
}

/// One HTTP/2 connection, made on first use: a gateway has one for each of its threads.
pub struct Link {
    address: SocketAddr,
    tls: Arc<ClientConfig>,
    made: Mutex<Option<SendRequest<Bytes>>>,
}

/// A tunnelled connection.
pub enum Stream {
    Tcp(TcpStream),
    Uds(UnixStream),
    H2(H2Stream),
    Grpc(Box<Grpc<H2Stream>>),
}

// === impl Entry ===

impl Entry {
    /// Opens a connection to `destination`. With a relay and a direct connection it is only known
    /// that the near end is open.
    pub async fn open(&self, destination: SocketAddr) -> Result<Stream> {
        let opened = tokio::time::timeout(PATIENCE, self.dial(destination)).await;
        opened.with_context(|| format!("no connection within {PATIENCE:?}"))?
    }

    /// Whether an opened connection is known to reach its destination.
    pub fn confirms(&self) -> bool {
        !matches!(self, Self::Direct | Self::Relay(_))
    }

    /// Releases the shared connections. Between measurements, nothing would answer the server's
    /// PINGs on them.
    pub async fn leave(&self) {
        if let Self::Link(link) = self {
            link.made.lock().await.take();
        }
    }

    async fn dial(&self, destination: SocketAddr) -> Result<Stream> {
        match self {
            Self::Direct => {
                let stream = TcpStream::connect(destination).await?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Self::Relay(socket) => Ok(Stream::Uds(uds(socket).await?)),
            Self::Connect(socket) => {
                let mut stream = uds(socket).await?;
                connect(&mut stream, &destination.to_string()).await?;
                Ok(Stream::Uds(stream))
            }
            Self::Link(link) => Ok(Stream::H2(link.open(destination).await?)),
            Self::Grpc(socket) => {
                let stream = grpc::dial(uds(socket).await?, &destination.to_string()).await?;
                Ok(Stream::Grpc(Box::new(stream)))
            }
        }
    }
}

async fn uds(path: &Path) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => tokio::time::sleep(FULL).await,
            done => return done,
        }
    }
}

// === impl Link ===

impl Link {
    pub fn new(address: SocketAddr, tls: Arc<ClientConfig>) -> Self {
        Self { address, tls, made: Mutex::default() }
    }

    async fn open(&self, destination: SocketAddr) -> Result<H2Stream> {
        let request = Request::builder().method(Method::CONNECT).uri(destination.to_string()).body(())?;
        let mut sender = self.sender().await?.ready().await?;
        let (answer, send) = sender.send_request(request, false)?;
        let answer = answer.await?;
        ensure!(answer.status() == 200, "CONNECT was answered {}: {:?}", answer.status(), answer.headers());
        Ok(H2Stream::new(send, answer.into_body()))
    }

    async fn sender(&self) -> Result<SendRequest<Bytes>> {
        let mut made = self.made.lock().await;
        match &*made {
            Some(sender) => Ok(sender.clone()),
            None => Ok(made.insert(self.make().await?).clone()),
        }
    }

    async fn make(&self) -> Result<SendRequest<Bytes>> {
        let socket = TcpStream::connect(self.address).await?;
        socket.set_nodelay(true)?;
        let tls = TlsConnector::from(Arc::clone(&self.tls)).connect(ServerName::try_from("localhost")?, socket).await?;
        let (sender, connection) = h2_stream::client().handshake(tls).await?;
        tokio::spawn(async move {
            let _ = connection.await; // its streams say it too
        });
        Ok(sender)
    }
}

// === impl Stream ===

impl Stream {
    /// Ends it as callers do, without waiting for the destination's end.
    pub async fn close(self) -> io::Result<()> {
        match self {
            Self::Tcp(_) | Self::Uds(_) => Ok(()),
            Self::H2(mut stream) => tokio::io::AsyncWriteExt::shutdown(&mut stream).await,
            Self::Grpc(stream) => stream.close().await,
        }
    }

    fn io(&mut self) -> Pin<&mut dyn Io> {
        match self {
            Self::Tcp(stream) => Pin::new(stream),
            Self::Uds(stream) => Pin::new(stream),
            Self::H2(stream) => Pin::new(stream),
            Self::Grpc(stream) => Pin::new(&mut **stream),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.get_mut().io().poll_read(cx, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().io().poll_write(cx, data)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().io().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().io().poll_shutdown(cx)
    }
}
