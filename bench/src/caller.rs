//! An HTTP/2 client of our own, for what h2load cannot do: client certificates, and requests that begin when they are due.
//!
//! It runs in this process, whose processor time is nobody's figure.

pub mod closed;
pub mod held;
pub mod open;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use h2::RecvStream;
use h2::client::{Builder, SendRequest};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri};
use kit::pki::{ALPN_H2, Issued};
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::way::Way;

const CONNECT_LIMIT: Duration = Duration::from_secs(20);
/// How much a stream may send unread: what Go's clients allow.
const WINDOW: u32 = 4 << 20;

/// Asks the same thing again and again.
#[derive(Clone)]
pub struct Caller {
    address: SocketAddr,
    tls: Arc<ClientConfig>,
    uri: Uri,
    headers: HeaderMap,
}

/// A connection, for many requests at a time.
#[derive(Clone)]
pub struct Connection {
    sender: SendRequest<Bytes>,
    caller: Arc<Caller>,
}

// === impl Caller ===

impl Caller {
    /// GETs of `path` along `way`, with the way's headers or with `headers` in their place (`Name: value`), as the owner of `identity`.
    pub fn new(way: &Way, path: &str, headers: Option<&[String]>, identity: Option<&Issued>) -> Result<Self> {
        let mut parsed = HeaderMap::new();
        for line in headers.unwrap_or(&way.headers) {
            let (name, value) = line.split_once(": ").with_context(|| format!("not a header: {line}"))?;
            parsed.append(HeaderName::try_from(name)?, HeaderValue::try_from(value)?);
        }
        let uri = way.url(path).parse()?;
        Ok(Self { address: way.address, tls: way.tls(identity, ALPN_H2), uri, headers: parsed })
    }

    /// Within a time limit. To be called on a runtime, which drives the connection.
    pub async fn connect(&self) -> Result<Connection> {
        let handshake = async {
            let tcp = TcpStream::connect(self.address).await?;
            tcp.set_nodelay(true)?;
            let tls = TlsConnector::from(Arc::clone(&self.tls)).connect("localhost".try_into()?, tcp).await?;
            let (sender, connection) = Builder::new()
                .initial_window_size(WINDOW)
                .initial_connection_window_size(1 << 30)
                .handshake(tls)
                .await?;
            tokio::spawn(connection);
            anyhow::Ok(sender)
        };
        let sender = tokio::time::timeout(CONNECT_LIMIT, handshake).await.context("no connection in time")??;
        Ok(Connection { sender, caller: Arc::new(self.clone()) })
    }

    fn request(&self) -> Request<()> {
        let mut request = Request::new(());
        *request.uri_mut() = self.uri.clone();
        *request.version_mut() = http::Version::HTTP_2;
        *request.headers_mut() = self.headers.clone();
        request
    }
}

// === impl Connection ===

impl Connection {
    /// One request and its whole answer, which must be 200.
    pub async fn exchange(&self) -> Result<()> {
        let answer = self.begin().await?;
        let status = answer.status();
        let mut body = answer.into_body();
        let mut text = Vec::new();
        while let Some(data) = body.data().await {
            let data = data?;
            body.flow_control().release_capacity(data.len())?;
            if status != StatusCode::OK {
                text.extend_from_slice(&data);
            }
        }
        ensure!(status == StatusCode::OK, "{status}: {}", String::from_utf8_lossy(&text));
        Ok(())
    }

    /// One request and the head of its answer.
    pub async fn begin(&self) -> Result<Response<RecvStream>> {
        let mut sender = self.sender.clone().ready().await?;
        let (answer, _) = sender.send_request(self.caller.request(), true)?;
        Ok(answer.await?)
    }
}
