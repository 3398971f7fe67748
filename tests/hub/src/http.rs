//! HTTPS requests by hand, for what kubectl cannot do: chosen headers, other people's certificates,
//! many concurrent streams. The connections are those of [`kit::client`].
//!
//! A request and its answer are blocking, use a new connection each (so that no answer depends on
//! an earlier one), HTTP/1.1, and a time limit. A [`Pool`] uses connections again, for requests
//! that test nothing themselves.

mod pool;

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use kit::client::{BoxedIo, H2Connection};
use kit::pki::{ALPN_H1, ALPN_H2, Authority, Issued, Trust};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::CertificateDer;

pub(crate) use self::pool::Pool;

const LIMIT: Duration = Duration::from_secs(20);
/// A hub's error for a request with a body, if its connection to the gateway had no room any more
/// when the request's turn came. Go's client counts cancelled streams against the gateway's limit
/// of streams until a PING after them is answered, closes the body, and then cannot send it on
/// another connection (`awaitOpenSlotForStreamLocked` and `errCannotRewind` in `net/http`). Other
/// tests cancel hundreds of streams at once.
const UNSENT: &str = "net/http: cannot rewind body after connection loss";
/// Attempts at such a request before the last one.
const TRIES: usize = 5;

/// A caller of one server.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) dialer: kit::client::Client,
}

/// An open connection, for several requests in a row.
pub struct Kept {
    runtime: Runtime,
    sender: SendRequest<Full<Bytes>>,
    client: Client,
}

/// Says of an error that no head of an answer had arrived before it.
#[derive(Debug)]
struct Unanswered;

/// An answer, read to its end.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// The body of the answer to a GET without TLS. The status must be 200.
pub fn plain(address: SocketAddr, path: &str) -> Result<String> {
    let answer = Client::plain(address).get(path, &[]).and_then(|answer| answer.expect(StatusCode::OK));
    Ok(answer.with_context(|| format!("{path} at {address}"))?.text())
}

// === impl Client ===

impl Client {
    /// A client for the server at `address`, whose certificate must be issued by `authority`; it
    /// presents `identity`.
    pub fn new(address: SocketAddr, authority: &Authority, identity: Option<&Issued>) -> Self {
        Self::trusting(address, Trust::Authority(authority), identity)
    }

    pub(crate) fn trusting(address: SocketAddr, trust: Trust<'_>, identity: Option<&Issued>) -> Self {
        Self { dialer: kit::client::Client::new(address, trust, identity) }
    }

    /// A client that accepts any certificate at `address` and presents none, like a kubelet's
    /// probe.
    pub fn probe(address: SocketAddr) -> Self {
        Self::trusting(address, Trust::Anyone, None)
    }

    /// A client without TLS, for our programs' admin endpoints.
    pub fn plain(address: SocketAddr) -> Self {
        Self { dialer: kit::client::Client::plain(address) }
    }

    /// GET with `headers`.
    pub fn get(&self, path: &str, headers: &[(&str, &str)]) -> Result<Response> {
        self.send(&Method::GET, path, headers, Bytes::new())
    }

    /// Sends any request. If the hub reports that it could not send it, it is sent again.
    pub fn send(&self, method: &Method, path: &str, headers: &[(&str, &str)], body: Bytes) -> Result<Response> {
        until_sent(move || self.send_once(method, path, headers, body.clone()))
    }

    fn send_once(&self, method: &Method, path: &str, headers: &[(&str, &str)], body: Bytes) -> Result<Response> {
        let request = self.request(method, path, headers)?.body(Full::new(body))?;
        apart(|| {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            Ok(runtime.block_on(async { tokio::time::timeout(LIMIT, self.exchange(request)).await }))
        })?
        .with_context(|| format!("{method} {path} was not answered within {LIMIT:?}"))?
        .with_context(|| format!("{method} {path} failed"))
    }

    /// The certificate that the server presents.
    pub fn peer_certificate(&self) -> Result<CertificateDer<'static>> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let stream = runtime.block_on(self.connect())?;
        let chain = stream.get_ref().1.peer_certificates().context("no certificate")?;
        Ok(chain.first().context("an empty chain")?.clone().into_owned())
    }

    /// A connection that is kept open.
    pub fn keep(&self) -> Result<Kept> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let sender = runtime.block_on(self.dialer.http1())?;
        Ok(Kept { runtime, sender, client: self.clone() })
    }

    /// A connection, for other uses than one request and its whole answer.
    pub async fn connect(&self) -> Result<TlsStream<TcpStream>> {
        Ok(self.dialer.tls(ALPN_H1).await?)
    }

    /// An HTTP/2 connection, for concurrent requests and for resets of some of them.
    pub async fn h2(&self) -> Result<H2Connection> {
        Ok(self.dialer.h2().await?)
    }

    /// Like [`Client::h2`], but before any HTTP/2 frames.
    pub async fn raw_h2(&self) -> Result<BoxedIo> {
        Ok(self.dialer.raw(ALPN_H2).await?)
    }

    /// Sends a GET and returns once the head of the answer has arrived. Dropping the body closes
    /// the connection.
    pub async fn open(&self, path: &str, headers: &[(&str, &str)]) -> Result<http::Response<Incoming>> {
        let request = self.request(&Method::GET, path, headers)?.body(Full::new(Bytes::new()))?;
        Ok(self.dialer.http1().await?.send_request(request).await?)
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Response> {
        Response::whole(self.dialer.http1().await?.send_request(request).await?).await
    }

    fn request(&self, method: &Method, path: &str, headers: &[(&str, &str)]) -> Result<http::request::Builder> {
        let mut request = Request::builder().method(method).uri(path).header("host", self.dialer.address().to_string());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.headers_ref().context("a header that cannot be sent")?;
        Ok(request)
    }
}

/// Sends again what the hub says that it could not send.
fn until_sent(mut send: impl FnMut() -> Result<Response>) -> Result<Response> {
    for _ in 0..TRIES {
        let response = send()?;
        if !response.is_unsent() {
            return Ok(response);
        }
    }
    send()
}

/// Runs on a separate thread if the caller is asynchronous: it has a runtime, and no other can be
/// started within it.
fn apart<T: Send>(run: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    if Handle::try_current().is_err() {
        return run();
    }
    let ran = std::thread::scope(|scope| scope.spawn(run).join());
    ran.unwrap_or_else(|_| bail!("a request panicked"))
}

// === impl Kept ===

impl Kept {
    /// GET.
    pub fn get(&mut self, path: &str) -> Result<Response> {
        self.send(&Method::GET, path, &[], Bytes::new())
    }

    /// Like [`Client::send`].
    pub fn send(&mut self, method: &Method, path: &str, headers: &[(&str, &str)], body: Bytes) -> Result<Response> {
        let request = self.client.request(method, path, headers)?.body(Full::new(body))?;
        let exchange = async {
            self.sender.ready().await.map_err(Unanswered::of)?;
            let head = self.sender.send_request(request).await.map_err(Unanswered::of)?;
            Response::whole(head).await
        };
        self.runtime
            .block_on(async { tokio::time::timeout(LIMIT, exchange).await })
            .with_context(|| format!("{method} {path} was not answered within {LIMIT:?}"))?
            .with_context(|| format!("{method} {path} failed"))
    }
}

// === impl Unanswered ===

impl Unanswered {
    /// Marks the error of a request, unless something arrived that is no head.
    fn of(error: hyper::Error) -> anyhow::Error {
        let is_parse = error.is_parse();
        let error = anyhow::Error::new(error);
        if is_parse { error } else { error.context(Self) }
    }
}

impl fmt::Display for Unanswered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("no head of an answer")
    }
}

// === impl Response ===

impl Response {
    async fn whole(response: http::Response<Incoming>) -> Result<Self> {
        let (head, body) = response.into_parts();
        Ok(Self { status: head.status, headers: head.headers, body: body.collect().await?.to_bytes() })
    }

    /// See [`UNSENT`].
    fn is_unsent(&self) -> bool {
        self.status == StatusCode::SERVICE_UNAVAILABLE && self.text().contains(UNSENT)
    }

    /// The body as JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body).with_context(|| format!("{}: not JSON: {}", self.status, self.text()))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns itself if the status is `expected`, or an error that quotes it.
    pub fn expect(self, expected: StatusCode) -> Result<Self> {
        if self.status != expected {
            bail!("expected {expected}, got {}: {}", self.status, self.text());
        }
        Ok(self)
    }
}
