//! Requests whose failures say whether anything was sent.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kit::client::Client;
use kit::pki::{ALPN_H2, Authority, Issued, Trust};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::conclusion::Answer;

/// Limit for a connection, TLS included: longer than most freezes of a program.
const CONNECT: Duration = Duration::from_secs(20);
/// Limit for an answer.
const ANSWER: Duration = Duration::from_secs(30);

/// Failure of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No connection: nothing was sent.
    NotSent(String),
    /// Something may have been sent.
    Broken(String),
}

/// How a caller connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// HTTP/1.1, one for each request.
    Fresh,
    /// HTTP/2, one for all requests until it breaks.
    Shared,
}

type Sender = http2::SendRequest<Full<Bytes>>;

/// A caller of one server.
#[derive(Debug)]
pub struct Caller {
    client: Client,
    authorization: Option<String>,
    connections: Connections,
    shared: Mutex<Option<Sender>>,
}

// === impl Caller ===

impl Caller {
    /// A caller with a bearer token. `authority`: the authority that it trusts, any if `None`.
    pub fn with_token(address: SocketAddr, authority: Option<&Authority>, token: &str, how: Connections) -> Self {
        let trust = authority.map_or(Trust::Anyone, Trust::Authority);
        Self::new(address, trust, None, Some(format!("Bearer {token}")), how)
    }

    /// A caller with a client certificate.
    pub fn with_certificate(address: SocketAddr, authority: &Authority, identity: &Issued) -> Self {
        Self::new(address, Trust::Authority(authority), Some(identity), None, Connections::Fresh)
    }

    /// A probe: without a credential, and trusting any certificate.
    pub fn stranger(address: SocketAddr) -> Self {
        Self::new(address, Trust::Anyone, None, None, Connections::Shared)
    }

    fn new(
        address: SocketAddr,
        trust: Trust<'_>,
        identity: Option<&Issued>,
        authorization: Option<String>,
        connections: Connections,
    ) -> Self {
        let client = Client::new(address, trust, identity);
        Self { client, authorization, connections, shared: Mutex::new(None) }
    }

    /// GET, and the whole answer.
    pub async fn get(&self, path: &str) -> Result<Answer, Failure> {
        self.whole(Method::GET, path, Bytes::new()).await
    }

    /// A request, and the whole answer. A body that was cut off is empty.
    pub async fn whole(&self, method: Method, path: &str, body: Bytes) -> Result<Answer, Failure> {
        let (head, body) = self.open(method, path, body).await?.into_parts();
        let body = match timeout(ANSWER, body.collect()).await {
            Ok(Ok(whole)) => whole.to_bytes(),
            Ok(Err(_)) | Err(_) => Bytes::new(),
        };
        Ok(Answer { status: head.status, headers: head.headers, body })
    }

    /// A request, and the head of its answer.
    pub async fn open(&self, method: Method, path: &str, body: Bytes) -> Result<Response<Incoming>, Failure> {
        match self.connections {
            Connections::Fresh => self.open_fresh(method, path, body).await,
            Connections::Shared => self.open_shared(method, path, body).await,
        }
    }

    async fn open_fresh(&self, method: Method, path: &str, body: Bytes) -> Result<Response<Incoming>, Failure> {
        let mut sender = timeout(CONNECT, self.client.http1()).await.map_err(not_sent)?.map_err(not_sent)?;
        let request = self.request(method, path, body).header("host", self.client.address().to_string());
        answered(timeout(ANSWER, sender.send_request(request.body_of())).await)
    }

    async fn open_shared(&self, method: Method, path: &str, body: Bytes) -> Result<Response<Incoming>, Failure> {
        let mut sender = timeout(CONNECT, self.sender()).await.map_err(not_sent)??;
        let request = self.request(method, &format!("https://{}{path}", self.client.address()), body);
        let answer = answered(timeout(ANSWER, sender.send_request(request.body_of())).await);
        if answer.is_err() {
            // It may be dead without a sign. Requests open on it go on.
            *self.shared.lock().await = None;
        }
        answer
    }

    async fn sender(&self) -> Result<Sender, Failure> {
        let mut shared = self.shared.lock().await;
        if let Some(sender) = shared.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok(sender.clone());
        }
        let io = TokioIo::new(self.client.tls(ALPN_H2).await.map_err(not_sent)?);
        let (sender, connection) = http2::Builder::new(TokioExecutor::new()).handshake(io).await.map_err(not_sent)?;
        tokio::spawn(connection);
        *shared = Some(sender.clone());
        Ok(sender)
    }

    fn request(&self, method: Method, uri: &str, body: Bytes) -> Draft {
        let mut builder = Request::builder().method(method).uri(uri).header("accept", "application/json");
        if let Some(authorization) = &self.authorization {
            builder = builder.header("authorization", authorization);
        }
        if !body.is_empty() {
            builder = builder.header("content-type", "application/json");
        }
        Draft { builder, body }
    }
}

struct Draft {
    builder: http::request::Builder,
    body: Bytes,
}

// === impl Draft ===

impl Draft {
    fn header(mut self, name: &str, value: String) -> Self {
        self.builder = self.builder.header(name, value);
        self
    }

    fn body_of(self) -> Request<Full<Bytes>> {
        self.builder.body(Full::new(self.body)).expect("a path and headers of our own")
    }
}

fn not_sent(error: impl std::fmt::Display) -> Failure {
    Failure::NotSent(error.to_string())
}

type Answered = Result<hyper::Result<Response<Incoming>>, tokio::time::error::Elapsed>;

fn answered(answer: Answered) -> Result<Response<Incoming>, Failure> {
    match answer {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) => Err(Failure::Broken(format!("{error:?}"))),
        Err(_) => Err(Failure::Broken(format!("no answer within {ANSWER:?}"))),
    }
}
