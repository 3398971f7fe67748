//! HTTP/2 and HTTP/1.1 over TLS, by ALPN.

use std::fmt;
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kit::pki;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::Options;

/// What a Go API server allows one client on one connection.
const MAX_STREAMS: u32 = 250;
const STREAM_WINDOW: u32 = 256 << 10;
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(20);

/// There is no answer: the stream is reset, or the connection ends.
#[derive(Debug)]
pub struct Gone;

/// Answers each request by `answer`, until the process is ended.
pub fn serve<A, F, B>(options: &Options, answer: A) -> Result<()>
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Response<B>, Gone>> + Send + 'static,
    B: Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Send + 'static,
{
    net::process::raise_open_files();
    let acceptor = TlsAcceptor::from(options.tls(pki::ALPN_BOTH)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(options.address).await?;
        loop {
            // Out of descriptors, or a client that has gone already: the others go on.
            let Ok((tcp, _)) = listener.accept().await else {
                tokio::task::yield_now().await;
                continue;
            };
            tokio::spawn(connection(tcp, acceptor.clone(), answer.clone()));
        }
    })
}

/// Its end is the client's matter.
async fn connection<A, F, B>(tcp: TcpStream, acceptor: TlsAcceptor, answer: A)
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Response<B>, Gone>> + Send + 'static,
    B: Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Send + 'static,
{
    let _ = tcp.set_nodelay(true); // fails only on a socket that is gone
    let Ok(Ok(tls)) = timeout(HANDSHAKE_LIMIT, acceptor.accept(tcp)).await else { return };
    let speaks_h2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
    let service = service_fn(answer);
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

// === impl Gone ===

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no answer")
    }
}

impl std::error::Error for Gone {}
