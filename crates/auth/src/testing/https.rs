//! A hub on a loopback port with real TLS, for tests of what is sent.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use kit::pki::{ALPN_H1, Authority, ClientAuth, Leaf, server_config};
use kube::Client;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

pub(crate) type Answer = Response<BoxBody<Bytes, Infallible>>;
type Handler = dyn Fn(Request<()>, Bytes) -> Answer + Send + Sync;

/// Serves until dropped.
pub(crate) struct HttpsHub {
    address: SocketAddr,
    authority: Authority,
    _server: JoinSet<()>,
}

// === impl HttpsHub ===

impl HttpsHub {
    pub(crate) async fn start(handler: impl Fn(Request<()>, Bytes) -> Answer + Send + Sync + 'static) -> Self {
        let authority = Authority::new("hub");
        let identity = authority.issue(&Leaf::server("hub"));
        let acceptor = TlsAcceptor::from(server_config(&identity, ClientAuth::None, ALPN_H1));
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let mut server = JoinSet::new();
        server.spawn(serve(listener, acceptor, Arc::new(handler)));
        Self { address, authority, _server: server }
    }

    pub(crate) fn client(&self) -> Client {
        let mut config = kube::Config::new(format!("https://{}", self.address).parse().expect("a URL"));
        config.root_cert = Some(vec![self.authority.certificate_der().to_vec()]);
        config.default_retry = false;
        Client::try_from(config).expect("a valid configuration")
    }
}

pub(crate) fn json(status: u16, body: &serde_json::Value) -> Answer {
    let body = Full::new(Bytes::from(body.to_string())).boxed();
    Response::builder().status(status).header("content-type", "application/json").body(body).expect("a valid response")
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, handler: Arc<Handler>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, handler) = (acceptor.clone(), Arc::clone(&handler));
        connections.spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = service_fn(move |request: Request<Incoming>| {
                let handler = Arc::clone(&handler);
                async move {
                    let (parts, body) = request.into_parts();
                    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
                    Ok::<_, Infallible>(handler(Request::from_parts(parts, ()), body))
                }
            });
            // The client ends the connection when it is done, which is no failure of the test.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
