//! HTTP/2 clients of our own, for what h2load cannot do: client certificates, watches, many paths,
//! requests that begin when they are due.
//!
//! They run in this process, whose processor time is in no figure.

pub mod closed;
pub mod held;
pub mod indexed;
pub mod open;
pub mod repeater;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use bytes::{Bytes, BytesMut};
use h2::RecvStream;
use h2::client::SendRequest;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response};
use kit::pki::{self, Authority, Issued, Trust};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::route::Route;

/// Limit for one request and its answer, and for one connection.
const LIMIT: Duration = Duration::from_mins(1);
/// What a hub says that does not serve a kind yet, and the time until it is asked again.
const NEW_KIND: &str = "storage is (re)initializing";
const PAUSE: Duration = Duration::from_millis(250);
/// Streams hold themselves back, not each other.
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;
/// Bytes that a stream may send unread, as Go's clients allow.
const STREAM_WINDOW: u32 = 4 << 20;
/// Limit of an answer's collected body.
const MAX_BODY: usize = 64 << 20;

/// A server to call, and the caller's credential.
#[derive(Clone)]
pub struct Caller {
    address: SocketAddr,
    tls: Arc<ClientConfig>,
    /// Put before all paths.
    prefix: String,
    headers: HeaderMap,
}

// === impl Caller ===

impl Caller {
    /// Calls as the user of `route`.
    pub fn on(route: &Route) -> Result<Self> {
        Self::with(route, &route.headers, None)
    }

    /// Along `route`, with `headers` (`Name: value`) in place of its own, as the owner of
    /// `identity`.
    pub fn with(route: &Route, headers: &[String], identity: Option<&Issued>) -> Result<Self> {
        let tls = route.tls(identity, pki::ALPN_H2);
        Ok(Self { address: route.address, tls, prefix: route.prefix.clone(), headers: parse(headers)? })
    }

    /// The same, but with paths exactly as given.
    #[must_use]
    pub fn without_prefix(mut self) -> Self {
        self.prefix.clear();
        self
    }

    /// Calls with the client certificate `identity`; the server's certificate is below `authority`.
    pub fn with_certificate(address: SocketAddr, authority: &Authority, identity: &Issued) -> Self {
        let tls = pki::client_config(Trust::Authority(authority), Some(identity), pki::ALPN_H2);
        Self { address, tls, prefix: String::new(), headers: HeaderMap::new() }
    }

    /// Calls without a credential; the server's certificate is below `authority`.
    pub fn trusting(address: SocketAddr, authority: &Authority) -> Self {
        let tls = pki::client_config(Trust::Authority(authority), None, pki::ALPN_H2);
        Self { address, tls, prefix: String::new(), headers: HeaderMap::new() }
    }

    /// The same with a bearer token.
    pub fn with_token(mut self, token: &str) -> Result<Self> {
        self.headers.insert(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {token}"))?);
        Ok(self)
    }

    /// A new connection, which lasts as long as the sender or one of its streams. To be called on a
    /// runtime, which drives it.
    pub async fn connect(&self) -> Result<SendRequest<Bytes>> {
        timeout(LIMIT, self.dial()).await?.with_context(|| format!("cannot connect to {}", self.address))
    }

    /// A new connection after its handshake, with nothing said yet.
    async fn secured(&self) -> Result<TlsStream<TcpStream>> {
        let tcp = TcpStream::connect(self.address).await?;
        tcp.set_nodelay(true)?;
        let name = ServerName::try_from("localhost")?;
        Ok(TlsConnector::from(Arc::clone(&self.tls)).connect(name, tcp).await?)
    }

    async fn dial(&self) -> Result<SendRequest<Bytes>> {
        let tls = self.secured().await?;
        let mut client = h2::client::Builder::new();
        client
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .enable_push(false)
            .data_frame_budget(usize::MAX >> 1); // small frames are what watches send
        let (sender, connection) = client.handshake::<_, Bytes>(tls).await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    pub fn get(&self, path: &str) -> Result<Request<Bytes>> {
        self.request(Method::GET, path, Bytes::new())
    }

    pub fn request(&self, method: Method, path: &str, body: Bytes) -> Result<Request<Bytes>> {
        Ok(self.head(method, path)?.map(|()| body))
    }

    /// A JSON merge patch (RFC 7386).
    pub fn merge(&self, path: &str, change: &Value) -> Result<Request<Bytes>> {
        self.typed(Method::PATCH, path, change, "application/merge-patch+json")
    }

    /// A request with an object.
    pub fn json(&self, method: Method, path: &str, object: &Value) -> Result<Request<Bytes>> {
        self.typed(method, path, object, "application/json")
    }

    fn typed(&self, method: Method, path: &str, body: &Value, kind: &'static str) -> Result<Request<Bytes>> {
        let mut request = self.request(method, path, serde_json::to_vec(body)?.into())?;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        Ok(request)
    }

    fn head(&self, method: Method, path: &str) -> Result<Request<()>> {
        let uri = format!("https://{}{}{path}", self.address, self.prefix);
        let mut request = Request::builder().method(method).uri(uri).body(())?;
        request.headers_mut().extend(self.headers.clone());
        Ok(request)
    }

    /// Sends `request` on a connection of [`Caller::connect`] and waits for the head of its answer.
    pub async fn send(&self, connection: &SendRequest<Bytes>, request: Request<Bytes>) -> Result<Response<RecvStream>> {
        let (head, body) = request.into_parts();
        let exchange = async {
            let mut sender = connection.clone().ready().await?;
            let (response, mut upload) = sender.send_request(Request::from_parts(head, ()), body.is_empty())?;
            if !body.is_empty() {
                upload.send_data(body, true)?;
            }
            anyhow::Ok(response.await?)
        };
        timeout(LIMIT, exchange).await.context("no answer")?
    }

    /// The body of the answer to `request`, which must be successful. A kind that was just
    /// installed is waited for.
    pub async fn ask(&self, connection: &SendRequest<Bytes>, request: Request<Bytes>) -> Result<Bytes> {
        let begin = Instant::now();
        loop {
            match self.ask_once(connection, request.clone()).await {
                Err(error) if begin.elapsed() < LIMIT && error.to_string().contains(NEW_KIND) => sleep(PAUSE).await,
                answer => return answer,
            }
        }
    }

    async fn ask_once(&self, connection: &SendRequest<Bytes>, request: Request<Bytes>) -> Result<Bytes> {
        let response = self.send(connection, request).await?;
        let body = successful(response).await?;
        timeout(LIMIT, collect(body)).await.context("no end of the answer")?
    }
}

/// The body of a 2xx; an error with the body of anything else.
pub async fn successful(response: Response<RecvStream>) -> Result<RecvStream> {
    let (head, body) = response.into_parts();
    if head.status.is_success() {
        return Ok(body);
    }
    let said = timeout(LIMIT, collect(body)).await??;
    bail!("{}: {}", head.status, String::from_utf8_lossy(&said))
}

async fn collect(mut stream: RecvStream) -> Result<Bytes> {
    let mut body = BytesMut::new();
    while let Some(chunk) = stream.data().await {
        let chunk = chunk?;
        stream.flow_control().release_capacity(chunk.len())?;
        body.extend_from_slice(&chunk);
        ensure!(body.len() <= MAX_BODY, "an answer of more than {MAX_BODY} bytes");
    }
    Ok(body.freeze())
}

fn parse(headers: &[String]) -> Result<HeaderMap> {
    let header = |line: &String| -> Result<(HeaderName, HeaderValue)> {
        let (name, value) = line.split_once(':').with_context(|| format!("not a header: {line}"))?;
        Ok((name.trim().parse()?, value.trim().parse()?))
    };
    headers.iter().map(header).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_prefix_and_all_headers() {
        let lines = ["Authorization: Bearer x:y", "X-Remote-Group: a", "X-Remote-Group: b"].map(str::to_owned);
        let caller = Caller {
            address: SocketAddr::from(([127, 0, 0, 1], 443)),
            tls: pki::client_config(Trust::Anyone, None, pki::ALPN_H2),
            prefix: "/before".to_owned(),
            headers: parse(&lines).unwrap(),
        };
        let request = caller.get("/version").unwrap();
        assert_eq!(request.uri(), "https://127.0.0.1:443/before/version");
        assert_eq!(request.headers()["authorization"], "Bearer x:y");
        assert_eq!(request.headers().get_all("x-remote-group").iter().collect::<Vec<_>>(), ["a", "b"]);
        assert!(parse(&["no colon".to_owned()]).is_err());
    }
}
