//! A client over connections that the caller opens, for programs with their own ways out of their
//! network.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response, Uri};
use hyper::body::Body as HttpBody;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::client::{Body, ConfigExt as _};
use kube::{Client, Config};
use net::opened::Opened;
use net::transport::Transport;
use tower::util::option_layer;
use tower::{BoxError, Layer as _, Service, ServiceExt};

use super::bounded::Bounded;
use super::client::{HubClientError, config, current_cluster, with_cryptography};

/// Opens connections.
pub type Dial = Arc<dyn Fn(DialTarget) -> BoxFuture<'static, io::Result<Opened>> + Send + Sync>;

/// The destination of a connection.
#[derive(Debug, Clone)]
pub struct DialTarget {
    /// DNS name or IP address. IPv6 has no brackets.
    pub host: String,
    pub port: u16,
    /// The `proxy-url` of the kubeconfig. It may hold a password.
    pub proxy: Option<String>,
}

#[derive(Clone)]
struct Connector {
    dial: Dial,
    proxy: Option<String>,
}

/// A plain connection, for TLS on top.
struct Dialled(TokioIo<Transport>);

/// Like [`client`](super::client::client), over connections that `dial` opens. `dial` itself must
/// read the proxy variables of the environment.
pub async fn client_through(kubeconfig: Option<&Path>, user_agent: &str, dial: Dial) -> Result<Client, HubClientError> {
    let config = config(kubeconfig, user_agent).await?;
    let proxy = kubeconfig.and_then(|path| wording(path)?.1);
    with_cryptography();
    let connector = Connector { dial, proxy };
    let connector = config.rustls_https_connector_with_connector(connector).map_err(HubClientError::Client)?;
    let service = legacy::Client::builder(TokioExecutor::new()).build::<_, Body>(connector);
    assembled(&config, service)
}

/// A client that sends through `service`, with the URL, the credential and the headers of `config`,
/// and with limits on its responses.
pub(super) fn assembled<S, B>(config: &Config, service: S) -> Result<Client, HubClientError>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    let service = ServiceExt::<Request<Body>>::map_err(service, Into::<BoxError>::into);
    let service = config.extra_headers_layer().map_err(HubClientError::Client)?.layer(service);
    let service = option_layer(config.auth_layer().map_err(HubClientError::Client)?).layer(service);
    let service = Bounded::USUAL.layer(config.base_uri_layer().layer(service));
    Ok(Client::new(service, config.default_namespace.clone()))
}

/// The current context's cluster as a kubeconfig words it. Programs of Open Cluster Management take
/// two kubeconfigs for those of one hub only if this is the same in both, to the byte.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wording {
    /// What the kubeconfig calls the cluster.
    pub name: String,
    /// None: with a user in it, which is a credential.
    pub server: Option<String>,
    pub ca: Option<Vec<u8>>,
}

/// The wording, and the `proxy-url`, which may hold a password, of the current context's cluster.
/// `None` if there is no such file, or no such cluster in it.
pub fn wording(kubeconfig: &Path) -> Option<(Wording, Option<String>)> {
    let (name, cluster) = current_cluster(kubeconfig)?;
    let has_no_user = |url: &String| {
        url.parse().is_ok_and(|url: Uri| url.authority().is_some_and(|authority| !authority.as_str().contains('@')))
    };
    let ca = cluster.certificate_authority_data.and_then(|data| STANDARD.decode(data).ok());
    let wording = Wording { name, server: cluster.server.filter(has_no_user), ca: ca.filter(|ca| !ca.is_empty()) };
    Some((wording, cluster.proxy_url.filter(|url| !url.is_empty())))
}

// === impl Connector ===

impl Service<Uri> for Connector {
    type Response = Dialled;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Dialled>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 });
        let opened = (self.dial)(DialTarget { host, port, proxy: self.proxy.clone() });
        Box::pin(async move { Ok(Dialled(TokioIo::new(opened.await?.plain()))) })
    }
}

// === impl Dialled ===

impl Connection for Dialled {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Dialled {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl Write for Dialled {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use kit::hub::FakeHub;
    use parking_lot::Mutex;
    use serde_json::json;
    use tokio::net::TcpStream;

    use super::*;
    use crate::{Cause, Requests};

    #[tokio::test]
    async fn calls_go_the_way_that_is_given_and_the_kubeconfigs_proxy_is_told() {
        let hub = FakeHub::start().await;
        hub.put_secret(json!({"metadata": {"namespace": "vela-system", "name": "a"}, "type": "x"}));
        let directory = tempfile::tempdir().unwrap();
        let (path, address) = (directory.path().join("kubeconfig"), hub.address());
        let proxied = "    proxy-url: http://jane:hunter2@proxy:3128\n    server:";
        std::fs::write(&path, hub.kubeconfig().replace("    server:", proxied)).unwrap();
        let ways = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&ways);
        let dial: Dial = Arc::new(move |way| {
            seen.lock().push(way);
            Box::pin(async move { TcpStream::connect(address).await.map(Opened::Tcp) })
        });
        let requests = Requests::new(client_through(Some(&path), "test/1", dial).await.unwrap());
        let secrets = "/api/v1/namespaces/vela-system/secrets";
        let found = requests.get(&format!("{secrets}/a")).await.unwrap();
        assert_eq!(found["type"], "x");
        let missing = requests.get(&format!("{secrets}/b")).await.unwrap_err();
        assert!(missing.is(StatusCode::NOT_FOUND), "{missing}");
        assert_eq!(requests.probe("/livez").await.unwrap(), StatusCode::OK);
        assert_eq!(hub.user_agents().first().map(String::as_str), Some("test/1"));
        let ways = ways.lock();
        assert_eq!(ways.len(), 1, "one connection for all: {ways:?}");
        assert_eq!((&*ways[0].host, ways[0].port), ("127.0.0.1", address.port()));
        assert_eq!(ways[0].proxy.as_deref(), Some("http://jane:hunter2@proxy:3128"));
    }

    #[tokio::test]
    async fn a_way_that_leads_nowhere_is_no_answer() {
        let hub = FakeHub::start().await;
        let directory = tempfile::tempdir().unwrap();
        let path = hub.write_kubeconfig(directory.path()).unwrap();
        let dial: Dial = Arc::new(|_| Box::pin(async { Err(io::Error::other("no way out")) }));
        let requests = Requests::new(client_through(Some(&path), "test/1", dial).await.unwrap());
        let error = requests.get("/version").await.unwrap_err();
        assert!(matches!(&error, Cause::Unreachable(why) if why.to_string().contains("no way out")), "{error}");
    }
}
