//! Fake forward proxies: HTTP `CONNECT`, the same inside TLS, and SOCKS5.
//!
//! They resolve every name to 127.0.0.1, so that a test sees which side resolved it, record their
//! requests, and insist on credentials if given some. Dropping one ends its listener and all
//! connections through it.

mod http;
mod socks;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::pki::{ALPN_BOTH, Authority, ClientAuth, Leaf, server_config};
use crate::wait::AbortOnDrop;

/// The protocol of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyKind {
    Http,
    Https,
    Socks5,
}

/// Options of a proxy. The default is open to every client and connects to any destination.
#[derive(Clone, Debug, Default)]
pub struct ProxyOptions {
    /// User and password to insist on.
    pub credentials: Option<(String, String)>,
    /// Sent in one write with the answer, as if the destination had spoken first.
    pub early: Vec<u8>,
    /// Takes connections and never sends a byte.
    pub silent: bool,
}

/// The request of one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// `host:port`, as the client wrote it.
    pub destination: String,
    /// User and password, if it gave any.
    pub credentials: Option<(String, String)>,
}

/// A running proxy.
#[derive(Debug)]
pub struct FakeProxy {
    kind: ProxyKind,
    address: SocketAddr,
    authority: Authority,
    options: ProxyOptions,
    shared: Arc<Shared>,
    cut: watch::Sender<u32>,
    _task: AbortOnDrop,
}

#[derive(Debug, Default)]
struct Shared {
    asked: Mutex<Vec<Asked>>,
    refuses: AtomicBool,
}

/// A client after its greeting: its destination, and its credentials.
struct Request {
    destination: String,
    credentials: Option<(String, String)>,
}

/// One connection's rules.
#[derive(Clone)]
struct Serving {
    kind: ProxyKind,
    options: ProxyOptions,
    tls: TlsAcceptor,
    shared: Arc<Shared>,
}

// === impl FakeProxy ===

impl FakeProxy {
    /// A proxy that is open to every client.
    pub async fn start(kind: ProxyKind) -> Self {
        Self::with(kind, ProxyOptions::default()).await
    }

    pub async fn with(kind: ProxyKind, options: ProxyOptions) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback has free ports");
        let address = listener.local_addr().expect("a bound socket has an address");
        let authority = Authority::new("proxy-ca");
        // Both protocols on offer: a client that speaks only one must say so.
        let tls = server_config(&authority.issue(&Leaf::server("proxy")), ClientAuth::None, ALPN_BOTH).into();
        let shared = Arc::<Shared>::default();
        let cut = watch::Sender::new(0);
        let serving = Serving { kind, options: options.clone(), tls, shared: Arc::clone(&shared) };
        let task = AbortOnDrop(tokio::spawn(accept(listener, serving, cut.subscribe())));
        Self { kind, address, authority, options, shared, cut, _task: task }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL with the credentials the proxy insists on.
    pub fn url(&self) -> String {
        match &self.options.credentials {
            Some((user, password)) => self.url_as(user, password),
            None => format!("{}://{}", self.kind.scheme(), self.address),
        }
    }

    /// The URL with other credentials; both must need no percent-encoding.
    pub fn url_as(&self, user: &str, password: &str) -> String {
        format!("{}://{user}:{password}@{}", self.kind.scheme(), self.address)
    }

    /// The root to trust, PEM.
    pub fn ca_pem(&self) -> String {
        self.authority.root_pem()
    }

    /// All requests so far, in order; one with wrong credentials too, where they come with the
    /// request.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().clone()
    }

    /// Answers every request from now on as if its destination were down.
    pub fn refuse(&self) {
        self.shared.refuses.store(true, Ordering::SeqCst);
    }

    /// Resets everything that goes through now.
    pub fn cut(&self) {
        self.cut.send_modify(|cuts| *cuts += 1);
    }
}

async fn accept(listener: TcpListener, serving: Serving, cut: watch::Receiver<u32>) {
    // Owned by this task: aborting it aborts them all.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((tcp, _)) = accepted else { continue };
                let (serving, mut cut) = (serving.clone(), cut.clone());
                cut.mark_unchanged();
                connections.spawn(async move {
                    tokio::select! {
                        // The way it leaves is the client's business.
                        _ = serving.connection(tcp) => {}
                        _ = cut.changed() => {}
                    }
                });
            },
            Some(_) = connections.join_next() => {},
        }
    }
}

// === impl Serving ===

impl Serving {
    async fn connection(&self, mut tcp: TcpStream) -> io::Result<()> {
        if self.options.silent {
            std::future::pending::<()>().await;
        }
        match self.kind {
            ProxyKind::Http => self.connect(&mut tcp).await,
            ProxyKind::Https => self.connect(&mut self.tls.accept(tcp).await?).await,
            ProxyKind::Socks5 => {
                let wanted = self.options.credentials.is_some();
                let request = socks::request(&mut tcp, wanted, |given| self.accepts(given)).await?;
                self.forward(tcp, request, &socks::granted(), &socks::refused()).await
            }
        }
    }

    async fn connect<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: &mut S) -> io::Result<()> {
        let request = http::request(stream).await?;
        if !self.accepts(request.credentials.as_ref()) {
            self.record(&request);
            return stream.write_all(http::UNAUTHENTICATED).await;
        }
        self.forward(stream, request, http::GRANTED, http::UNREACHABLE).await
    }

    /// Connects to the requested destination, answers, and copies until either side ends.
    async fn forward<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        mut client: S,
        request: Request,
        granted: &[u8],
        refused: &[u8],
    ) -> io::Result<()> {
        self.record(&request);
        let port = request.destination.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or(0_u16);
        let reached = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await;
        let (Ok(mut destination), false) = (reached, self.shared.refuses.load(Ordering::SeqCst)) else {
            return client.write_all(refused).await;
        };
        client.write_all(&[granted, &self.options.early].concat()).await?;
        client.flush().await?;
        copy_bidirectional(&mut client, &mut destination).await.map(drop)
    }

    fn record(&self, request: &Request) {
        let Request { destination, credentials } = request;
        let asked = Asked { destination: destination.clone(), credentials: credentials.clone() };
        self.shared.asked.lock().push(asked);
    }

    fn accepts(&self, given: Option<&(String, String)>) -> bool {
        self.options.credentials.as_ref().is_none_or(|wanted| given == Some(wanted))
    }
}

// === impl ProxyKind ===

impl ProxyKind {
    /// All of them, for tests that hold for each.
    pub const ALL: [Self; 3] = [Self::Http, Self::Https, Self::Socks5];

    fn scheme(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Socks5 => "socks5",
        }
    }
}

#[cfg(test)]
mod tests;
