//! The serving side of one core: accept, TLS, HTTP/2 or HTTP/1.1, then the handler.

mod heard;
mod lengths;
mod limits;
mod unbroken;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use auth::Peer;
use http::header::CONNECTION;
use http::{HeaderValue, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use net::gather::gather;
use net::heard::Heard;
use net::large_reads::LargeReads;
use net::linger::Linger;
use net::tls;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use self::heard::Ear;
use self::lengths::Lengths;
use self::limits::Limits;
use self::unbroken::Unbroken;
use crate::body::ResponseBody;
use crate::connection::Connection;
use crate::handler::handle;
use crate::names::{Marks, Names};
use crate::proxy::framing;
use crate::shared::Shared;

type Stream = TlsStream<LargeReads<TcpStream>>;

/// Accepts connections on one core until the gateway drains.
pub struct Server {
    gateway: Arc<Shared>,
    tls: TlsAcceptor,
    core: usize,
    room: Arc<Semaphore>,
}

// === impl Server ===

impl Server {
    pub fn new(gateway: Arc<Shared>, tls: Arc<ServerConfig>, core: usize) -> Self {
        Self { gateway, tls: tls.into(), core, room: Arc::new(Semaphore::new(Limits::CONNECTIONS)) }
    }

    pub async fn run(self, listener: TcpListener) {
        let drain = self.gateway.drain.clone();
        let mut drained = pin!(drain.soft());
        let server = Arc::new(self);
        loop {
            // At the limit, new connections wait in the kernel's queue.
            let accepted = async {
                let permit = Arc::clone(&server.room).acquire_owned().await.expect("never closed");
                (listener.accept().await, permit)
            };
            let (accepted, permit) = tokio::select! {
                biased;
                () = &mut drained => return,
                accepted = accepted => accepted,
            };
            match accepted {
                Ok((stream, address)) => server.spawn(stream, address, permit),
                Err(error) => pause_after(&error).await,
            }
        }
    }

    fn spawn(self: &Arc<Self>, stream: TcpStream, address: SocketAddr, permit: OwnedSemaphorePermit) {
        let server = Arc::clone(self);
        let guard = server.gateway.drain.guard();
        tokio::spawn(async move {
            let open = server.gateway.metrics.client_connection();
            server.connection(stream, address).await;
            drop((guard, permit, open));
        });
    }

    async fn connection(&self, stream: TcpStream, address: SocketAddr) {
        net::dial::tune(&stream);
        let handshake = timeout(Limits::TLS_HANDSHAKE, self.tls.accept(LargeReads::new(stream)));
        let stream = match handshake.await {
            Ok(Ok(stream)) => stream,
            failed => {
                self.gateway.metrics.tls_failed();
                let reason = match failed {
                    Ok(Err(error)) => error.to_string(),
                    _ => format!("not finished within {:?}", Limits::TLS_HANDSHAKE),
                };
                return tracing::debug!(%address, reason, "TLS handshake failed");
            }
        };
        let session = stream.get_ref().1;
        let certificates =
            session.peer_certificates().unwrap_or_default().iter().map(|der| der.clone().into_owned()).collect();
        let http2 = session.alpn_protocol() == Some(tls::H2);
        let peer = Peer::new(address, certificates);
        let connection = Arc::new(Connection::new(Arc::clone(&self.gateway), peer, self.core));
        let end = if http2 { serve_http2(stream, connection).await } else { serve_http1(stream, connection).await };
        if let Err(error) = end {
            tracing::debug!(%address, %error, "client connection ended");
        }
    }
}

/// Errors of `accept` are of one connection, or mean that the process is out of something: files, most often.
async fn pause_after(error: &io::Error) {
    const PAUSE: Duration = Duration::from_millis(200);
    if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
        return;
    }
    tracing::error!(%error, "cannot accept connections, trying again");
    tokio::time::sleep(PAUSE).await;
}

async fn serve_http2(stream: Stream, connection: Arc<Connection>) -> hyper::Result<()> {
    let requests = Arc::clone(&connection);
    let marks = Marks::default();
    let marked = marks.clone();
    let service = service_fn(move |mut request: http::Request<Incoming>| {
        let connection = Arc::clone(&requests);
        if marked.take(request.headers_mut()) {
            request.extensions_mut().insert(framing::LongName);
        }
        // Boxed: hyper moves the future about before it polls it, and keeps its room until the response has ended, which for
        // a watch is hours.
        Box::pin(async move { Ok::<Response<ResponseBody>, Infallible>(handle(connection, request).await) })
    });
    let streams = connection.gateway().settings.max_streams;
    let ear = Ear::default();
    let (io, outlet) = gather(Heard::new(Names::of_client(Linger::new(stream), marks), ear.clone()));
    let serving = Unbroken::new(outlet.drive(limits::http2(streams).serve_connection(TokioIo::new(io), service)));
    let leave = |serving: Pin<&mut Unbroken<_, _>>| {
        hyper::server::conn::http2::Connection::graceful_shutdown(Pin::new(serving.get_mut().connection()));
    };
    let serving = drive(serving, leave, &connection);
    tokio::select! {
        end = serving => end,
        // Before the preface no PING asks whether anybody is there.
        () = silence(&ear) => Ok(()),
    }
}

/// Completes if the client has not said its preface in time.
async fn silence(ear: &Ear) {
    tokio::time::sleep(Limits::PREFACE).await;
    if ear.heard_preface() {
        std::future::pending::<()>().await;
    }
}

async fn serve_http1(stream: Stream, connection: Arc<Connection>) -> hyper::Result<()> {
    let requests = Arc::clone(&connection);
    let lengths = Lengths::default();
    let reader = lengths.reader();
    let service = service_fn(move |mut request: http::Request<Incoming>| {
        let connection = Arc::clone(&requests);
        let last = framing::must_close_after(&request);
        if last && lengths.are_ambiguous() {
            request.extensions_mut().insert(framing::TwoLengths);
        }
        if last || framing::leaves_http(&request) {
            lengths.enough();
        }
        // Boxed, so that idle connections keep no room for it.
        Box::pin(async move {
            let mut response = handle(connection, request).await;
            if last {
                // By the header and not by asking the connection to leave: what is in its buffer already must not be parsed.
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<Response<ResponseBody>, Infallible>(response)
        })
    });
    let io = TokioIo::new(Heard::new(Linger::new(stream), reader));
    let serving = limits::http1().serve_connection(io, service).with_upgrades();
    drive(serving, hyper::server::conn::http1::UpgradeableConnection::graceful_shutdown, &connection).await
}

/// Serves until the client is done; asked to leave, finishes what is in flight; told to, drops it.
async fn drive<C>(serving: C, leave: impl Fn(Pin<&mut C>), connection: &Connection) -> hyper::Result<()>
where
    C: Future<Output = hyper::Result<()>>,
{
    let drain = &connection.gateway().drain;
    let mut serving = pin!(serving);
    tokio::select! {
        biased;
        end = serving.as_mut() => return end,
        () = drain.soft() => {}
        () = connection.should_close() => {}
    }
    leave(serving.as_mut());
    tokio::select! {
        biased;
        () = drain.hard() => Ok(()),
        end = serving => end,
    }
}
