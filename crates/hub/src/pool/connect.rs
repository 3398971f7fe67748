//! Opens the connections of a pool.

use std::error::Error;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, TryFutureExt as _};
use http::Uri;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::{Connection as _, HttpConnector};
use hyper_util::rt::TokioIo;
use kube::Config;
use kube::client::ConfigExt as _;
use net::words::chain;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::{BoxError, Service};

use super::{PING_AFTER, PING_WITHIN};
use crate::client::{CONNECT_TIMEOUT, HubClientError, with_cryptography};

/// Opens TLS connections, with a time limit of 10 s each.
#[derive(Clone)]
pub struct Connect {
    connector: HttpsConnector<HttpConnector>,
    only_http2: bool,
}

/// The server selected another protocol in ALPN (RFC 7301).
#[derive(Debug, thiserror::Error)]
#[error("the server does not speak HTTP/2")]
pub struct NoHttp2;

/// Connectors for HTTP/2 and for HTTP/1.1, in this order.
pub fn connectors(config: &Config) -> Result<(Connect, Connect), HubClientError> {
    with_cryptography();
    let tls = config.rustls_client_config().map_err(HubClientError::Client)?;
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    // HTTP/1.1 has no ping of its own, and a watch may be silent for long.
    tcp.set_keepalive(Some(PING_AFTER));
    tcp.set_keepalive_interval(Some(PING_WITHIN));
    tcp.set_keepalive_retries(Some(3));
    let builder = || {
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls.clone()).https_or_http();
        let Some(name) = config.tls_server_name.clone() else { return Ok(builder) };
        let name = name.try_into().map_err(|_| HubClientError::ServerName)?;
        Ok(builder.with_server_name_resolver(FixedServerNameResolver::new(name)))
    };
    // Offers both protocols, so that the server selects the one it speaks.
    let multiplexed = builder()?.enable_all_versions().wrap_connector(tcp.clone());
    let http1 = builder()?.enable_http1().wrap_connector(tcp);
    Ok((Connect { connector: multiplexed, only_http2: true }, Connect { connector: http1, only_http2: false }))
}

// === impl NoHttp2 ===

impl NoHttp2 {
    /// Whether `error` was caused by this.
    pub fn is_why(error: &(dyn Error + 'static)) -> bool {
        chain(error).any(<dyn Error>::is::<Self>)
    }
}

// === impl Connect ===

impl Service<Uri> for Connect {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.connector.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (opening, only_http2) = (self.connector.call(uri), self.only_http2);
        let late = |_| format!("no connection within {CONNECT_TIMEOUT:?}");
        timeout(CONNECT_TIMEOUT, opening)
            .map_err(move |elapsed| BoxError::from(late(elapsed)))
            .map(move |opened| match opened.flatten()? {
                stream if only_http2 && !stream.connected().is_negotiated_h2() => Err(NoHttp2.into()),
                stream => Ok(stream),
            })
            .boxed()
    }
}
