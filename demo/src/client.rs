//! The demo's own client: one HTTP/2 connection over TLS, as client-go keeps it, and nothing hidden
//! behind it.
//!
//! No retries and no pool, so that a step that succeeds succeeded at once. Every wait has a limit,
//! every body and line a size.

use std::{io, net::SocketAddr, time::Duration};

use http::{Method, StatusCode};
use kit::{
    client::{self, H2Body, H2Connection, H2Response},
    pki::Trust,
};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio::time::{error::Elapsed, timeout};
use tokio_rustls::rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject as _},
};

/// How long an answer's head, or a whole document, may take. Less than the kit waits, which then
/// panics.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Content type of a patch by server-side apply.
const APPLY: &str = "application/apply-patch+yaml";
/// The largest document that is read.
const MAX_DOCUMENT: usize = 4 << 20;
/// The longest line of a stream.
const MAX_LINE: usize = 1 << 20;

/// A connection to an API server. Dropping it closes the connection and every stream on it.
#[derive(Debug)]
pub struct Client(H2Connection);

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
    body: H2Body,
    buffer: Vec<u8>,
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
    /// The connection or the stream broke.
    #[error("the connection broke: {0}")]
    Broken(#[from] h2::Error),
    /// Nothing came in time.
    #[error("no answer in time")]
    Timeout(#[from] Elapsed),
    /// The document, or a line of a stream, is larger than the demo reads.
    #[error("the answer is too large")]
    TooLarge,
    /// A stream was asked for and a document came.
    #[error("status {}: {}", .0.status.as_u16(), .0.message())]
    Refused(Box<Answer>),
    /// The stream ended.
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
        let client = client::Client::new(address, Trust::Roots(&roots), None).server_name(&address.ip().to_string());
        Ok(Self(timeout(ANSWER_TIMEOUT, client.h2()).await??))
    }

    /// Gets a document. A refusal is an answer, not an error.
    pub async fn get(&self, path: &str, token: &SecretString) -> Result<Answer, ClientError> {
        timeout(ANSWER_TIMEOUT, async { Answer::read(self.send(path, token).await?).await }).await?
    }

    /// Applies an object server-side, or deletes one: the same with a method and a body.
    pub async fn send_object(
        &self,
        method: Method,
        path: &str,
        token: &SecretString,
        object: &Value,
    ) -> Result<Answer, ClientError> {
        let bearer = format!("Bearer {}", token.expose_secret());
        let headers = [("authorization", bearer.as_str()), ("accept", "application/json"), ("content-type", APPLY)];
        let body = if object.is_null() { String::new() } else { object.to_string() };
        let answer = async { Answer::read(self.0.call(method, path, &headers, body).await?).await };
        timeout(ANSWER_TIMEOUT, answer).await?
    }

    /// Opens a stream; any status but 200 is an error that carries the answer.
    pub async fn lines(&self, path: &str, token: &SecretString) -> Result<Lines, ClientError> {
        let open = async {
            let response = self.send(path, token).await?;
            if response.head.status == StatusCode::OK {
                return Ok(Lines { body: response.body, buffer: Vec::new() });
            }
            Err(ClientError::Refused(Box::new(Answer::read(response).await?)))
        };
        timeout(ANSWER_TIMEOUT, open).await?
    }

    async fn send(&self, path: &str, token: &SecretString) -> Result<H2Response, h2::Error> {
        let bearer = format!("Bearer {}", token.expose_secret());
        self.0.get(path, &[("authorization", &bearer), ("accept", "application/json, */*")]).await
    }
}

impl Answer {
    async fn read(mut response: H2Response) -> Result<Self, ClientError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = response.body.chunk().await {
            bytes.extend_from_slice(&chunk?);
            if bytes.len() > MAX_DOCUMENT {
                return Err(ClientError::TooLarge);
            }
        }
        Ok(Self { status: response.head.status, body: serde_json::from_slice(&bytes).unwrap_or_default() })
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

// === impl Lines ===

impl Lines {
    /// The next line without its newline, waited for no longer than `patience`.
    pub async fn next(&mut self, patience: Duration) -> Result<String, ClientError> {
        timeout(patience.min(ANSWER_TIMEOUT), self.read()).await?
    }

    async fn read(&mut self) -> Result<String, ClientError> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if self.buffer.len() > MAX_LINE {
                return Err(ClientError::TooLarge);
            }
            self.buffer.extend_from_slice(&self.body.chunk().await.ok_or(ClientError::Ended)??);
        }
    }
}

#[cfg(test)]
mod tests {
    use kit::pki::Authority;

    use super::*;
    use crate::member::{BERLIN, Member, Pace};

    const PATIENCE: Duration = Duration::from_secs(5);

    async fn member() -> (Member, Client, SecretString) {
        let token = SecretString::from("sesame");
        let member = Member::start(&BERLIN, token.clone(), Pace::Manual).await;
        let client = Client::connect(member.address(), member.ca_pem()).await.unwrap();
        (member, client, token)
    }

    #[tokio::test]
    async fn documents_streams_and_refusals() {
        let (_member, client, token) = member().await;
        let nodes = client.get("/api/v1/nodes", &token).await.unwrap();
        assert_eq!((nodes.status, nodes.items().len()), (StatusCode::OK, 3));
        let refused = client.get("/api/v1/nodes", &SecretString::from("wrong")).await.unwrap();
        assert_eq!((refused.status, refused.message()), (StatusCode::UNAUTHORIZED, "Unauthorized"));

        let mut watch = client.lines("/api/v1/nodes?watch=1", &token).await.unwrap();
        for _ in nodes.items() {
            assert!(watch.next(PATIENCE).await.unwrap().starts_with('{'));
        }
    }

    #[tokio::test]
    async fn the_end_of_a_stream_shows() {
        let (member, client, token) = member().await;
        let pods = client.get("/api/v1/namespaces/shop/pods?labelSelector=app%3Dimport", &token).await.unwrap();
        let name = pods.items()[0]["metadata"]["name"].as_str().unwrap();
        let path = format!("/api/v1/namespaces/shop/pods/{name}/log?follow=true&tailLines=1");
        let mut ended = client.lines(&path, &token).await.unwrap();
        ended.next(PATIENCE).await.unwrap();
        assert!(matches!(ended.next(PATIENCE).await, Err(ClientError::Ended)));

        let mut watch = client.lines("/api/v1/nodes?watch=1&fieldSelector=metadata.name%3Dnone", &token).await.unwrap();
        drop(member);
        assert!(matches!(watch.next(PATIENCE).await, Err(ClientError::Broken(_))));
    }

    #[tokio::test]
    async fn a_refused_stream_says_why() {
        let (_member, client, token) = member().await;
        let error = client.lines("/api/v1/namespaces/shop/pods/x/log", &token).await.unwrap_err();
        assert_eq!(error.to_string(), "status 404: pods \"x\" not found");
    }

    #[tokio::test]
    async fn another_authority_is_not_trusted() {
        let (member, ..) = member().await;
        let other = Authority::new("other").root_pem();
        assert!(matches!(Client::connect(member.address(), &other).await, Err(ClientError::Connect(_))));
        assert!(matches!(Client::connect(member.address(), "no PEM").await, Err(ClientError::Authority(_))));
    }
}
