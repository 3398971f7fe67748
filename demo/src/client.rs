//! The demo's own client: one HTTP/2 connection over TLS, as client-go keeps it, and nothing hidden behind it.
//!
//! No retries and no pool, so that a step that succeeds succeeded at once. Every wait has a limit, every body and
//! line a size.

use std::{io, net::SocketAddr, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Empty, LengthLimitError, Limited};
use hyper::{
    body::Incoming,
    client::conn::http2::{SendRequest, handshake},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kit::pki::{self, Trust};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio::{
    net::TcpStream,
    task::JoinSet,
    time::{error::Elapsed, timeout},
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        RootCertStore,
        pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    },
};

/// How long an answer's head, or a whole document, may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest document that is read.
const MAX_DOCUMENT: usize = 4 << 20;
/// The longest line of a stream.
const MAX_LINE: usize = 1 << 20;

/// A connection to an API server. Dropping it closes the connection and every stream on it.
#[derive(Debug)]
pub struct Client {
    sender: SendRequest<Empty<Bytes>>,
    authority: String,
    _driver: JoinSet<()>,
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its body, `null` if it is no JSON.
    pub body: Value,
}

/// An answer that is read line by line as it comes: a watch or a followed log.
#[derive(Debug)]
pub struct Lines {
    body: Incoming,
    buffer: BytesMut,
}

/// Why a request got no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// TCP or TLS did not come about.
    #[error("cannot connect: {0}")]
    Connect(#[from] io::Error),
    /// The certificate authority is no PEM certificate.
    #[error("cannot use the certificate authority: {0}")]
    Authority(String),
    /// The request cannot be written down.
    #[error("cannot build the request: {0}")]
    Request(#[from] http::Error),
    /// The connection or the stream broke.
    #[error("the connection broke: {0}")]
    Broken(#[from] hyper::Error),
    /// Nothing came in time.
    #[error("no answer in time")]
    Timeout(#[from] Elapsed),
    /// The document is larger than the demo reads.
    #[error("the answer is too large: {0}")]
    TooLarge(#[from] LengthLimitError),
    /// A stream was asked for and a document came.
    #[error("status {}: {}", .0.status.as_u16(), .0.message())]
    Refused(Box<Answer>),
    /// The stream ended, or a line of it does.
    #[error("the stream ended")]
    Ended,
}

// === impl Client ===

impl Client {
    /// Connects to `address`, trusting only the authority in `ca_pem`.
    pub async fn connect(address: SocketAddr, ca_pem: &str) -> Result<Self, ClientError> {
        let bad = |error: &dyn std::fmt::Display| ClientError::Authority(error.to_string());
        let certificate = CertificateDer::from_pem_slice(ca_pem.as_bytes()).map_err(|error| bad(&error))?;
        let mut roots = RootCertStore::empty();
        roots.add(certificate).map_err(|error| bad(&error))?;
        let tls = TlsConnector::from(pki::client_config(Trust::Roots(&roots), None, pki::ALPN_H2));
        let connect = async {
            let socket = TcpStream::connect(address).await?;
            // As Go does: a request right after a cancelled stream would wait 40 ms for the server's delayed ACK.
            socket.set_nodelay(true)?;
            tls.connect(ServerName::from(address.ip()), socket).await
        };
        let stream = timeout(ANSWER_TIMEOUT, connect).await??;
        let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        let mut driver = JoinSet::new();
        // Its error reaches whoever has a stream on the connection.
        driver.spawn(async move { drop(connection.await) });
        Ok(Self { sender, authority: address.to_string(), _driver: driver })
    }

    /// Gets a document. A refusal is an answer, not an error.
    pub async fn get(&self, path: &str, token: &SecretString) -> Result<Answer, ClientError> {
        let (status, body) = self.send(path, token).await?;
        Answer::read(status, body).await
    }

    /// Opens a stream; any status but 200 is an error that carries the answer.
    pub async fn lines(&self, path: &str, token: &SecretString) -> Result<Lines, ClientError> {
        let (status, body) = self.send(path, token).await?;
        if status == StatusCode::OK {
            return Ok(Lines { body, buffer: BytesMut::new() });
        }
        Err(ClientError::Refused(Box::new(Answer::read(status, body).await?)))
    }

    async fn send(&self, path: &str, token: &SecretString) -> Result<(StatusCode, Incoming), ClientError> {
        let mut bearer =
            HeaderValue::from_str(&format!("Bearer {}", token.expose_secret())).map_err(http::Error::from)?;
        bearer.set_sensitive(true);
        let request = Request::get(format!("https://{}{path}", self.authority))
            .header(header::AUTHORIZATION, bearer)
            .header(header::ACCEPT, "application/json, */*")
            .body(Empty::new())?;
        let mut sender = self.sender.clone();
        let response = timeout(ANSWER_TIMEOUT, sender.send_request(request)).await??;
        Ok((response.status(), response.into_body()))
    }
}

// === impl Answer ===

impl Answer {
    async fn read(status: StatusCode, body: Incoming) -> Result<Self, ClientError> {
        let bytes = match timeout(ANSWER_TIMEOUT, Limited::new(body, MAX_DOCUMENT).collect()).await? {
            Ok(collected) => collected.to_bytes(),
            Err(error) => return Err(broken(error)),
        };
        Ok(Self { status, body: serde_json::from_slice(&bytes).unwrap_or_default() })
    }

    /// The message of a Status; empty for anything else.
    pub fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    /// The elements of a list; none for anything else.
    pub fn items(&self) -> &[Value] {
        self.body["items"].as_array().map_or(&[], Vec::as_slice)
    }
}

/// `Limited` hides the type of its error.
fn broken(error: Box<dyn std::error::Error + Send + Sync>) -> ClientError {
    match error.downcast::<hyper::Error>() {
        Ok(error) => ClientError::Broken(*error),
        Err(error) => error.downcast::<LengthLimitError>().map_or(ClientError::Ended, |error| (*error).into()),
    }
}

// === impl Lines ===

impl Lines {
    /// The next line without its newline, waited for no longer than `patience`.
    pub async fn next(&mut self, patience: Duration) -> Result<String, ClientError> {
        timeout(patience, self.read()).await?
    }

    async fn read(&mut self) -> Result<String, ClientError> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(end + 1);
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if self.buffer.len() > MAX_LINE {
                return Err(ClientError::Ended);
            }
            let frame = self.body.frame().await.ok_or(ClientError::Ended)??;
            if let Ok(data) = frame.into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::{BERLIN, Member, Pace};

    const PATIENCE: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn documents_streams_and_refusals() {
        let token = SecretString::from("sesame");
        let member = Member::start(&BERLIN, token.clone(), Pace::Manual).await.unwrap();
        let client = Client::connect(member.address(), member.ca_pem()).await.unwrap();

        let nodes = client.get("/api/v1/nodes", &token).await.unwrap();
        assert_eq!((nodes.status, nodes.items().len()), (StatusCode::OK, BERLIN.nodes.len()));
        let refused = client.get("/api/v1/nodes", &SecretString::from("wrong")).await.unwrap();
        assert_eq!((refused.status, refused.message()), (StatusCode::UNAUTHORIZED, "Unauthorized"));

        let mut watch = client.lines("/api/v1/nodes?watch=1", &token).await.unwrap();
        for _ in BERLIN.nodes {
            assert!(watch.next(PATIENCE).await.unwrap().starts_with('{'));
        }
        member.stop().await;
        assert!(matches!(watch.next(PATIENCE).await, Err(ClientError::Ended)));
    }

    #[tokio::test]
    async fn a_refused_stream_says_why() {
        let token = SecretString::from("sesame");
        let member = Member::start(&BERLIN, token.clone(), Pace::Manual).await.unwrap();
        let client = Client::connect(member.address(), member.ca_pem()).await.unwrap();
        let error = client.lines("/api/v1/namespaces/shop/pods/x/log", &token).await.unwrap_err();
        assert_eq!(error.to_string(), "status 404: pods \"x\" not found");
    }

    #[tokio::test]
    async fn another_authority_is_not_trusted() {
        let member = Member::start(&BERLIN, SecretString::from("sesame"), Pace::Manual).await.unwrap();
        let other = pki::Authority::new("other").root_pem();
        assert!(matches!(Client::connect(member.address(), &other).await, Err(ClientError::Connect(_))));
        assert!(matches!(Client::connect(member.address(), "no PEM").await, Err(ClientError::Authority(_))));
    }
}
