//! One client connection in either HTTP version: whole calls, streamed answers, streamed uploads.
//!
//! It retries nothing and decodes nothing. What only one version can do (resets, held windows, raw
//! bytes) is reached through [`Connection::h1`] and [`Connection::h2`].

mod answer;
mod streamed;
mod upload;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use kit::client::{H1Connection, H1Error, H2Connection};
use kit::wait::within;

pub use self::answer::Answer;
pub use self::streamed::Streamed;
pub use self::upload::Upload;

/// How often [`Connection::until`] asks.
const POLL: Duration = Duration::from_millis(10);

/// A client connection that sends the same headers with every request.
#[derive(Debug)]
pub struct Connection {
    inner: Inner,
    headers: Vec<(String, String)>,
}

#[derive(Debug)]
enum Inner {
    H1(H1Connection),
    H2(H2Connection),
}

/// Why an exchange did not come to its proper end.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    H1(#[from] H1Error),
    #[error(transparent)]
    H2(#[from] h2::Error),
}

// === impl Connection ===

impl Connection {
    /// Sends `token` as the bearer token of every request from now on.
    #[must_use]
    pub fn bearer(self, token: &str) -> Self {
        self.with("authorization", &format!("Bearer {token}"))
    }

    /// Sends a header line with every request from now on.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The connection below, which must be HTTP/1.1.
    pub fn h1(&mut self) -> &mut H1Connection {
        match &mut self.inner {
            Inner::H1(connection) => connection,
            Inner::H2(_) => panic!("this connection speaks HTTP/2"),
        }
    }

    /// The connection below, which must be HTTP/2.
    pub fn h2(&self) -> &H2Connection {
        match &self.inner {
            Inner::H1(_) => panic!("this connection speaks HTTP/1.1"),
            Inner::H2(connection) => connection,
        }
    }

    /// GET of a whole answer.
    pub async fn get(&mut self, target: &str) -> Answer {
        self.call("GET", target, &[], b"").await
    }

    /// Waits, at most `limit`, until a GET of `target` is answered as `expected`; returns that
    /// answer.
    pub async fn until(&mut self, limit: Duration, target: &str, expected: impl Fn(&Answer) -> bool) -> Answer {
        let asking = async {
            let mut interval = tokio::time::interval(POLL);
            loop {
                interval.tick().await;
                let answer = self.get(target).await;
                if expected(&answer) {
                    return answer;
                }
            }
        };
        within(limit, format_args!("the expected answer of {target}"), asking).await
    }

    /// A whole exchange, which has to come to its proper end.
    pub async fn call(&mut self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let answer = self.try_call(method, target, headers, body).await;
        answer.unwrap_or_else(|failure| panic!("{method} {target}: {failure}"))
    }

    /// A whole exchange. A body, unless empty, is sent with its length on HTTP/1.1.
    pub async fn try_call(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer, Failure> {
        let lines = lines(&self.headers, headers);
        match &mut self.inner {
            Inner::H1(connection) => {
                let (head, body) = connection.call(method, target, &lines, body).await?;
                let trailers = connection.trailers().clone();
                Ok(Answer { status: head.status, headers: head.headers, body, trailers })
            }
            Inner::H2(connection) => {
                let mut exchange = connection.send(parse(method), target, &lines, body.is_empty()).await?;
                if !body.is_empty() {
                    exchange.send(Bytes::copy_from_slice(body), true).await?;
                }
                Streamed::h2(exchange.response().await?).whole().await
            }
        }
    }

    /// Sends a request without a body and returns its answer as it begins.
    pub async fn open(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
    ) -> Result<Streamed<'_>, Failure> {
        let lines = lines(&self.headers, headers);
        match &mut self.inner {
            Inner::H1(connection) => {
                connection.request(method, target, &lines, b"").await.map_err(H1Error::Io)?;
                let head = connection.head().await?;
                Ok(Streamed::h1(head, connection))
            }
            Inner::H2(connection) => {
                let exchange = connection.send(parse(method), target, &lines, true).await?;
                Ok(Streamed::h2(exchange.response().await?))
            }
        }
    }

    /// As [`Connection::open`], beside other streams on this connection, which must be HTTP/2.
    pub async fn open_beside(&self, method: &str, target: &str) -> Result<Streamed<'static>, Failure> {
        let exchange = self.h2().send(parse(method), target, &lines(&self.headers, &[]), true).await?;
        Ok(Streamed::h2(exchange.response().await?))
    }

    /// As [`Connection::upload`], beside other streams on this connection, which must be HTTP/2.
    pub async fn upload_beside(&self, method: &str, target: &str) -> Result<Upload<'static>, Failure> {
        Ok(Upload::h2(self.h2().send(parse(method), target, &lines(&self.headers, &[]), false).await?))
    }

    /// Sends a request whose body follows: chunked on HTTP/1.1, unless `headers` announce a length.
    pub async fn upload(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
    ) -> Result<Upload<'_>, Failure> {
        let mut lines = lines(&self.headers, headers);
        match &mut self.inner {
            Inner::H1(connection) => {
                let chunked = !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-length"));
                if chunked {
                    lines.push(("transfer-encoding", "chunked"));
                }
                connection.request(method, target, &lines, b"").await.map_err(H1Error::Io)?;
                Ok(Upload::h1(connection, chunked))
            }
            Inner::H2(connection) => Ok(Upload::h2(connection.send(parse(method), target, &lines, false).await?)),
        }
    }
}

impl From<H1Connection> for Connection {
    fn from(connection: H1Connection) -> Self {
        Self { inner: Inner::H1(connection), headers: Vec::new() }
    }
}

impl From<H2Connection> for Connection {
    fn from(connection: H2Connection) -> Self {
        Self { inner: Inner::H2(connection), headers: Vec::new() }
    }
}

fn lines<'a>(always: &'a [(String, String)], now: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    always.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(now.iter().copied()).collect()
}

fn parse(method: &str) -> Method {
    method.parse().expect("the test gives a valid method")
}

/// The first value of a header, if it is UTF-8.
fn first<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| std::str::from_utf8(value.as_bytes()).ok())
}
