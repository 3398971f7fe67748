//! The listener under the fake member and the fake hub: TLS, then HTTP/2 or HTTP/1.1 as ALPN
//! decides.
//!
//! Limits are those of a Kubernetes API server (1 MiB of headers, a connection window that holds
//! every stream's), so that a test never meets a default of the library by accident. Dropping the
//! [`Server`] ends its listener and all connections.

mod connection;
mod peer;

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::connection::{Orders, Serving};
pub use self::peer::Peer;
use crate::wait::AbortOnDrop;

/// Facts about the connection of a request, for its handler.
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

    /// Closes every open connection, even in mid-request.
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
