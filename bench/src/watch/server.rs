//! The upstream of watches, a process of its own so that what it uses is not what a proxy uses:
//! HTTP/2 and HTTP/1.1 over TLS, by ALPN.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::Result;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kit::pki;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::lines::Lines;
use crate::stand_in::Options;

/// A watch on which nothing happens after its first line.
pub const IDLE: &str = "/api/v1/namespaces/default/configmaps?watch=true";
/// A watch with an event a second.
pub const EVENTS: &str = "/api/v1/namespaces/default/events?watch=true";
/// Answers with the credential it was asked with.
pub const ECHO: &str = "/api/v1/namespaces/default/configmaps/credential";

/// What a Go API server allows one client on one connection.
const MAX_STREAMS: u32 = 250;
const STREAM_WINDOW: u32 = 256 << 10;
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(20);

/// Serves until the process is ended.
pub fn run(options: &Options) -> Result<()> {
    net::process::raise_open_files();
    let acceptor = TlsAcceptor::from(options.tls(pki::ALPN_BOTH)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(options.address).await?;
        let streams = Arc::new(AtomicU32::new(0));
        loop {
            // Out of descriptors, or a client that has gone already: the others go on.
            let Ok((tcp, _)) = listener.accept().await else {
                tokio::task::yield_now().await;
                continue;
            };
            tokio::spawn(connection(tcp, acceptor.clone(), Arc::clone(&streams)));
        }
    })
}

async fn connection(tcp: TcpStream, acceptor: TlsAcceptor, streams: Arc<AtomicU32>) {
    let _ = tcp.set_nodelay(true); // fails only on a socket that is gone
    let Ok(Ok(tls)) = timeout(HANDSHAKE_LIMIT, acceptor.accept(tcp)).await else { return };
    let speaks_h2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
    let service = service_fn(move |request| {
        let answer = answer(&request, streams.fetch_add(1, Ordering::Relaxed));
        async { Ok::<_, Infallible>(answer) }
    });
    // How a connection ends is the client's matter.
    if speaks_h2 {
        let mut server = http2::Builder::new(TokioExecutor::new());
        server
            .max_concurrent_streams(MAX_STREAMS)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(STREAM_WINDOW * 4);
        drop(server.serve_connection(TokioIo::new(tls), service).await);
    } else {
        drop(http1::Builder::new().serve_connection(TokioIo::new(tls), service).await);
    }
}

/// `number` tells streams apart, so that their events are spread over the second.
fn answer(request: &Request<Incoming>, number: u32) -> Response<Lines> {
    let asked = request.uri().path_and_query().map_or("", |asked| asked.as_str());
    let body = if asked.ends_with(EVENTS) {
        Lines::with_events(number)
    } else if asked.ends_with(IDLE) {
        Lines::idle()
    } else {
        let credential = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes().to_vec());
        Lines::only(credential.unwrap_or_default().into())
    };
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}
