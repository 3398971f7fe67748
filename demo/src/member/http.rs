//! The member's listener: TLS, then HTTP/2 or HTTP/1.1 as the client chose by ALPN.
//!
//! Connections are bounded, handshakes are timed, and a stop lets running answers finish within a deadline.

use std::{convert::Infallible, io, pin::pin, sync::Arc, time::Duration};

use http::Request;
use hyper::{body::Incoming, server::conn, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::handler::Shared;

/// Connections served at once; further ones wait in the listen queue.
const MAX_CONNECTIONS: usize = 256;
/// Streams of one HTTP/2 connection.
const MAX_STREAMS: u32 = 250;
/// Bytes of request headers, as Go's servers allow.
const MAX_HEADERS: u32 = 1 << 20;
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for a request head, which is also how long an idle HTTP/1.1 connection is kept.
const HEAD_TIMEOUT: Duration = Duration::from_mins(2);
/// How long a stop waits for running answers.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause after a failed accept: it fails for want of file descriptors, which a moment may cure.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves `listener` until the member stops.
pub(crate) async fn serve(listener: TcpListener, tls: TlsAcceptor, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((socket, _)) => { connections.spawn(connection(socket, tls.clone(), Arc::clone(&shared))); }
                Err(_) => sleep(ACCEPT_PAUSE).await,
            },
        }
    }
    // What has not finished by then is cut off when the set is dropped.
    let _ = timeout(DRAIN_TIMEOUT, async { while connections.join_next().await.is_some() {} }).await;
}

/// One connection. Its errors end with it: there is nobody else to tell.
async fn connection(socket: TcpStream, tls: TlsAcceptor, shared: Arc<Shared>) {
    let _ = socket.set_nodelay(true);
    let Ok(Ok(stream)) = timeout(HANDSHAKE_TIMEOUT, accept(socket, &tls)).await else { return };
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let stop = shared.stop.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (parts, _) = request.into_parts();
        let response = shared.answer(&parts);
        async move { Ok::<_, Infallible>(response) }
    });
    let io = TokioIo::new(stream);
    if http2 {
        let mut builder = conn::http2::Builder::new(TokioExecutor::new());
        builder.timer(TokioTimer::new()).max_concurrent_streams(MAX_STREAMS).max_header_list_size(MAX_HEADERS);
        let mut connection = pin!(builder.serve_connection(io, service));
        tokio::select! {
            _ = connection.as_mut() => {}
            () = stop.cancelled() => { connection.as_mut().graceful_shutdown(); let _ = connection.await; }
        }
    } else {
        let mut builder = conn::http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
        let mut connection = pin!(builder.serve_connection(io, service));
        tokio::select! {
            _ = connection.as_mut() => {}
            () = stop.cancelled() => { connection.as_mut().graceful_shutdown(); let _ = connection.await; }
        }
    }
}

async fn accept(socket: TcpStream, tls: &TlsAcceptor) -> io::Result<TlsStream<TcpStream>> {
    tls.accept(socket).await
}
