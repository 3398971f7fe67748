//! Frontends: they ask a tunnel-server for byte streams, in each of the ways it understands.

mod head;
mod records;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use kit::client::Io;
use kit::pki::{ALPN_H1, ALPN_H2};
use kit::wait::{WAIT, within};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncBufRead as _, AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tunnel::{ClusterName, Destination, Hop, Link, OpenError, Settings};

pub use self::head::Answer;
pub use self::records::Records;
use crate::pki::Pki;

/// Longest wait for any answer to a `CONNECT`: above the server's own dial timeout.
const PATIENCE: Duration = Duration::from_secs(20);

/// A way to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frontend {
    /// HTTP/1.1 CONNECT over a Unix socket.
    Uds,
    /// HTTP/1.1 CONNECT over mutual TLS.
    Tls,
    /// HTTP/2 CONNECT over mutual TLS, all streams on one link.
    H2,
}

/// One frontend of one server.
#[derive(Debug)]
pub struct Caller {
    kind: Frontend,
    uds: PathBuf,
    address: SocketAddr,
    tls: Arc<ClientConfig>,
    cluster: Option<String>,
    link: OnceCell<Link>,
}

/// An open byte stream. Dropping it closes the socket below, or resets the stream.
#[derive(Debug)]
pub enum Tunnel {
    Uds(UnixStream),
    Tls(Box<TlsStream<Records<TcpStream>>>),
    H2(tunnel::Stream),
}

/// Why there is no stream.
#[derive(Debug, thiserror::Error)]
pub enum NotOpened {
    /// An answer other than 200.
    #[error("{0:?}")]
    Refused(Answer),
    /// No answer that can be understood.
    #[error("no answer: {0}")]
    Broken(#[from] io::Error),
}

// === impl Frontend ===

impl Frontend {
    pub const ALL: [Self; 3] = [Self::Uds, Self::Tls, Self::H2];
}

// === impl Caller ===

impl Caller {
    /// `uds` or `address` is where the server listens for `kind`.
    pub fn new(kind: Frontend, pki: &Pki, uds: PathBuf, address: SocketAddr, cluster: Option<&str>) -> Self {
        let tls = pki.frontend_tls(if kind == Frontend::H2 { ALPN_H2 } else { ALPN_H1 });
        Self { kind, uds, address, tls, cluster: cluster.map(str::to_owned), link: OnceCell::new() }
    }

    /// Presents what `tls` presents.
    #[must_use]
    pub fn with_tls(self, tls: Arc<ClientConfig>) -> Self {
        Self { tls, ..self }
    }

    pub fn kind(&self) -> Frontend {
        self.kind
    }

    /// Asks for a stream to `authority`. Panics when there is no answer at all for long.
    pub async fn open(&self, authority: &str) -> Result<Tunnel, NotOpened> {
        let what = format!("an answer to CONNECT {authority} over {:?}", self.kind);
        within(PATIENCE, what, async {
            match self.kind {
                Frontend::H2 => self.open_h2(authority).await,
                Frontend::Uds | Frontend::Tls => self.open_h1(authority).await,
            }
        })
        .await
    }

    /// As [`Caller::open`], for a stream that has to come about.
    #[track_caller]
    pub fn must(&self, authority: &str) -> impl Future<Output = Tunnel> {
        let (kind, caller) = (self.kind, std::panic::Location::caller());
        async move { self.open(authority).await.unwrap_or_else(|error| panic!("{kind:?} at {caller}: {error}")) }
    }

    /// As [`Caller::open`], for a stream that has to be refused.
    #[track_caller]
    pub fn refused(&self, authority: &str) -> impl Future<Output = Answer> {
        let (kind, caller) = (self.kind, std::panic::Location::caller());
        async move {
            match self.open(authority).await {
                Err(NotOpened::Refused(answer)) => answer,
                other => panic!("{kind:?} at {caller}: {other:?} instead of a refusal"),
            }
        }
    }

    /// The connection before anything is said on it (HTTP/1.1).
    pub async fn connect(&self) -> io::Result<Tunnel> {
        if self.kind == Frontend::Uds {
            return Ok(Tunnel::Uds(UnixStream::connect(&self.uds).await?));
        }
        let socket = TcpStream::connect(self.address).await?;
        socket.set_nodelay(true)?;
        let name = ServerName::try_from("localhost").expect("a DNS name");
        let tls = TlsConnector::from(self.tls.clone()).connect(name, Records::new(socket)).await?;
        Ok(Tunnel::Tls(Box::new(tls)))
    }

    /// The head of a `CONNECT` as kube-apiserver writes it, and the cluster.
    pub fn head(&self, authority: &str) -> String {
        let cluster = self.cluster.as_ref().map(|name| format!("Tunnel-Cluster: {name}\r\n")).unwrap_or_default();
        format!("CONNECT {authority} HTTP/1.1\r\nHost: 127.0.0.1\r\n{cluster}\r\n")
    }

    /// The link all streams of an HTTP/2 frontend are on, made on first use.
    pub async fn link(&self) -> io::Result<&Link> {
        let start = || async {
            let io = self.connect().await?;
            Link::start(io, &Settings::default(), Hop::Server).await.map_err(io::Error::other)
        };
        self.link.get_or_try_init(start).await
    }

    async fn open_h1(&self, authority: &str) -> Result<Tunnel, NotOpened> {
        let mut io = self.connect().await?;
        tokio::io::AsyncWriteExt::write_all(&mut io, self.head(authority).as_bytes()).await?;
        tokio::io::AsyncWriteExt::flush(&mut io).await?;
        let (answer, rest) = head::read(&mut io).await?;
        if answer.status != 200 {
            return Err(NotOpened::Refused(answer.with_body(&mut io, rest).await));
        }
        if !rest.is_empty() {
            // kube-apiserver drops such a connection.
            return Err(io::Error::other(format!("{} bytes came together with the 200", rest.len())).into());
        }
        Ok(io)
    }

    async fn open_h2(&self, authority: &str) -> Result<Tunnel, NotOpened> {
        let to = Destination::parse(authority).expect("a destination: malformed ones are for the raw frontends");
        let cluster = self.cluster.as_ref().map(|name| ClusterName::parse(name).expect("a cluster's name"));
        match self.link().await?.open(&to, cluster.as_ref()).await {
            Ok(stream) => Ok(Tunnel::H2(stream)),
            Err(OpenError::Refused(refusal)) => Err(NotOpened::Refused(refusal.into())),
            Err(error) => Err(io::Error::other(error).into()),
        }
    }
}

// === impl Tunnel ===

impl Tunnel {
    /// Ends it so that the far end has to see a reset. Over a Unix socket there is no such thing:
    /// it is closed.
    pub fn reset(self) {
        match self {
            Self::Uds(_) => {}
            Self::Tls(tls) => {
                let _ = tls.get_ref().0.get_ref().set_zero_linger(); // fails only on a socket that is gone already
            }
            Self::H2(mut stream) => stream.reset(),
        }
    }

    /// Reads on until it ends, and returns how; `None` is an end of file. Panics when it does not
    /// end, naming `what` it is.
    pub async fn end(&mut self, what: &str) -> Option<io::ErrorKind> {
        let mut buffer = vec![0; 64 << 10];
        let end = async {
            loop {
                match self.read(&mut buffer).await {
                    Ok(0) => return None,
                    Ok(_) => {}
                    Err(error) => return Some(error.kind()),
                }
            }
        };
        within(WAIT, format!("the end of {what}"), end).await
    }

    fn io(&mut self) -> Pin<&mut dyn Io> {
        match self {
            Self::Uds(socket) => Pin::new(socket),
            Self::Tls(tls) => Pin::new(tls),
            Self::H2(stream) => Pin::new(stream),
        }
    }
}

impl AsyncRead for Tunnel {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let Self::Tls(tls) = this else { return this.io().poll_read(cx, buf) };
        // One record at a time: `poll_read` would fill the buffer with as many as there are.
        let data = ready!(Pin::new(&mut *tls).poll_fill_buf(cx))?;
        let length = data.len().min(buf.remaining());
        buf.put_slice(&data[..length]);
        Pin::new(tls).consume(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().io().poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().io().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().io().poll_shutdown(cx)
    }
}
