//! The listener under the fake member and the fake hub: TLS, then HTTP/2 or HTTP/1.1 as ALPN decides.
//!
//! Limits are those of a Kubernetes API server (1 MiB of headers, a connection window that holds every stream's), so that a
//! test never meets a default of the library by accident. Dropping the [`Server`] ends its listener and all connections.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::wait::AbortOnDrop;

/// Bytes of request head accepted, as Go's server does.
const MAX_HEADER_BYTES: usize = 1 << 20;
/// Header lines accepted on HTTP/1.1.
const MAX_HEADER_LINES: usize = 8192;
/// Receive window of one HTTP/2 stream: what a Go API server gives.
const STREAM_WINDOW: u32 = 256 << 10;
/// Largest window of HTTP/2 (RFC 9113 section 6.9.1).
const MAX_WINDOW: u32 = (1 << 31) - 1;

/// The client certificate somebody presented, already verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// CN of the subject: the user.
    pub common_name: String,
    /// Each O of the subject, in order: the groups.
    pub organisations: Vec<String>,
}

/// What a handler knows about the connection a request came on.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Counted from 0 in order of acceptance.
    pub(crate) number: usize,
    pub(crate) peer: Option<Peer>,
}

/// Why a scripted body ends without its end.
#[derive(Debug)]
pub(crate) struct Aborted;

pub(crate) type Body = UnsyncBoxBody<Bytes, Aborted>;
type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;
/// Answers one request.
pub(crate) type Handler = Arc<dyn Fn(Request<Incoming>, Arc<Connection>) -> Answer + Send + Sync>;

/// A running listener.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    control: watch::Sender<Control>,
    counters: Arc<Counters>,
    _task: AbortOnDrop,
}

/// How often each order was given; a connection obeys those given since it was accepted.
#[derive(Clone, Copy, Debug, Default)]
struct Control {
    goaway: usize,
    close: usize,
}

#[derive(Debug, Default)]
struct Counters {
    accepted: AtomicUsize,
    open: AtomicUsize,
    refused_handshakes: AtomicUsize,
}

/// The handler, on one connection. A named type: the compiler cannot prove a `service_fn` closure here to be `Send`.
struct Calls {
    handler: Handler,
    connection: Arc<Connection>,
}

/// The orders as one connection sees them.
struct Orders {
    current: watch::Receiver<Control>,
    since: Control,
}

/// How a connection goes on.
#[derive(PartialEq, Eq)]
enum Turn {
    Over,
    Leave,
}

/// Everything one connection task needs.
#[derive(Clone)]
struct Serving {
    acceptor: TlsAcceptor,
    max_concurrent_streams: u32,
    handler: Handler,
    counters: Arc<Counters>,
}

// === impl Server ===

impl Server {
    /// Binds `address` (port 0 picks one) and serves until dropped.
    pub(crate) async fn start(
        address: SocketAddr,
        tls: Arc<ServerConfig>,
        max_concurrent_streams: u32,
        handler: Handler,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (control, orders) = watch::channel(Control::default());
        let counters = Arc::new(Counters::default());
        let serving = Serving { acceptor: tls.into(), max_concurrent_streams, handler, counters: counters.clone() };
        let task = AbortOnDrop(tokio::spawn(accept(listener, serving, orders)));
        Ok(Self { address, control, counters, _task: task })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// TCP connections accepted so far.
    pub(crate) fn accepted(&self) -> usize {
        self.counters.accepted.load(Ordering::SeqCst)
    }

    /// Connections open now, those in their handshake included.
    pub(crate) fn open(&self) -> usize {
        self.counters.open.load(Ordering::SeqCst)
    }

    /// TLS handshakes that failed.
    pub(crate) fn refused_handshakes(&self) -> usize {
        self.counters.refused_handshakes.load(Ordering::SeqCst)
    }

    /// Ends connections gracefully: GOAWAY, or `Connection: close`; running requests finish.
    pub(crate) fn goaway(&self) {
        self.control.send_modify(|control| control.goaway += 1);
    }

    /// Closes every open connection in the middle of whatever it does.
    pub(crate) fn close_connections(&self) {
        self.control.send_modify(|control| control.close += 1);
    }
}

async fn accept(listener: TcpListener, serving: Serving, orders: watch::Receiver<Control>) {
    // Owned by this task: aborting it aborts them all.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((tcp, _)) = accepted else { continue };
                let number = serving.counters.accepted.fetch_add(1, Ordering::SeqCst);
                let open = Open::new(serving.counters.clone());
                let orders = Orders { since: *orders.borrow(), current: orders.clone() };
                let serving = serving.clone();
                connections.spawn(async move {
                    serving.connection(tcp, number, orders).await;
                    drop(open);
                });
            },
            Some(_) = connections.join_next() => {},
        }
    }
}

// === impl Serving ===

impl Serving {
    async fn connection(self, tcp: TcpStream, number: usize, orders: Orders) {
        let _ = tcp.set_nodelay(true); // fails only on a socket that is gone already
        let tls = tokio::select! {
            tls = self.acceptor.accept(tcp) => tls,
            () = orders.close() => return,
        };
        let Ok(tls) = tls else {
            self.counters.refused_handshakes.fetch_add(1, Ordering::SeqCst);
            return;
        };
        self.http(tls, number, orders).await;
    }

    async fn http(self, tls: TlsStream<TcpStream>, number: usize, orders: Orders) {
        let connection = Arc::new(Connection { number, peer: Peer::of(&tls) });
        let speaks_h2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
        let service = Calls { handler: self.handler, connection };
        if speaks_h2 {
            let http = h2_server(self.max_concurrent_streams).serve_connection(TokioIo::new(tls), service);
            let mut http = pin!(http);
            if orders.run(http.as_mut()).await == Turn::Leave {
                http.as_mut().graceful_shutdown();
                orders.finish(http).await;
            }
        } else {
            let http = h1_server().serve_connection(TokioIo::new(tls), service).with_upgrades();
            let mut http = pin!(http);
            if orders.run(http.as_mut()).await == Turn::Leave {
                http.as_mut().graceful_shutdown();
                orders.finish(http).await;
            }
        }
    }
}

// === impl Calls ===

impl Service<Request<Incoming>> for Calls {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn call(&self, request: Request<Incoming>) -> Answer {
        (self.handler)(request, self.connection.clone())
    }
}

fn h2_server(max_concurrent_streams: u32) -> hyper::server::conn::http2::Builder<TokioExecutor> {
    let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    builder
        .max_concurrent_streams(max_concurrent_streams)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(STREAM_WINDOW.saturating_mul(max_concurrent_streams.max(4)).min(MAX_WINDOW))
        .max_header_list_size(u32::try_from(MAX_HEADER_BYTES).expect("1 MiB"));
    builder
}

fn h1_server() -> hyper::server::conn::http1::Builder {
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.max_headers(MAX_HEADER_LINES).max_buf_size(2 * MAX_HEADER_BYTES).header_read_timeout(None);
    builder
}

// === impl Orders ===

impl Orders {
    /// Waits for the order to close at once.
    async fn close(&self) {
        // An error is the end of the server, which ends this connection anyway.
        let _ = self.current.clone().wait_for(|now| now.close > self.since.close).await;
    }

    async fn goaway(&self) {
        let _ = self.current.clone().wait_for(|now| now.goaway > self.since.goaway).await;
    }

    /// Runs a connection until it is over or has to be asked to leave.
    async fn run(&self, http: Pin<&mut impl Future>) -> Turn {
        tokio::select! {
            _ = http => Turn::Over,
            () = self.close() => Turn::Over,
            () = self.goaway() => Turn::Leave,
        }
    }

    /// Runs a leaving connection to its end.
    async fn finish(&self, http: Pin<&mut impl Future>) {
        tokio::select! {
            _ = http => {},
            () = self.close() => {},
        }
    }
}

// === impl Peer ===

impl Peer {
    pub(crate) fn of(tls: &TlsStream<TcpStream>) -> Option<Self> {
        let certificate = tls.get_ref().1.peer_certificates()?.first()?;
        let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
        let subject = certificate.subject();
        let text = |attribute: &x509_parser::x509::AttributeTypeAndValue<'_>| {
            attribute.as_str().unwrap_or_default().to_owned()
        };
        Some(Self {
            common_name: subject.iter_common_name().next().map(text).unwrap_or_default(),
            organisations: subject.iter_organization().map(text).collect(),
        })
    }
}

// === impl Aborted ===

impl std::fmt::Display for Aborted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the script aborts this body")
    }
}

impl std::error::Error for Aborted {}

/// Counts one connection as open.
struct Open(Arc<Counters>);

impl Open {
    fn new(counters: Arc<Counters>) -> Self {
        counters.open.fetch_add(1, Ordering::SeqCst);
        Self(counters)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}
