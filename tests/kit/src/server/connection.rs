//! One accepted connection: TLS, then HTTP/2 or HTTP/1.1 as ALPN decides, until it ends or an order
//! ends it.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::{Answer, Body, Connection, Control, Counters, Handler, Peer};

/// Bytes of request head accepted, as Go's server does.
const MAX_HEADER_BYTES: usize = 1 << 20;
/// Header lines accepted on HTTP/1.1.
const MAX_HEADER_LINES: usize = 8192;
/// Receive window of one HTTP/2 stream, as a Go API server has it.
const STREAM_WINDOW: u32 = 256 << 10;
/// Largest window of HTTP/2 (RFC 9113 section 6.9.1).
const MAX_WINDOW: u32 = (1 << 31) - 1;

/// Everything one connection task needs.
#[derive(Clone)]
pub(super) struct Serving {
    pub(super) acceptor: TlsAcceptor,
    pub(super) max_concurrent_streams: u32,
    pub(super) handler: Handler,
    pub(super) counters: Arc<Counters>,
}

/// The handler, on one connection. A named type: the compiler cannot prove a `service_fn` closure
/// here to be `Send`.
struct Calls {
    handler: Handler,
    connection: Arc<Connection>,
}

/// The orders as one connection sees them.
pub(super) struct Orders {
    pub(super) current: watch::Receiver<Control>,
    pub(super) since: Control,
}

/// How a connection goes on.
#[derive(PartialEq, Eq)]
enum Turn {
    Over,
    Leave,
}

// === impl Serving ===

impl Serving {
    pub(super) async fn connection(self, tcp: TcpStream, number: usize, orders: Orders) {
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
