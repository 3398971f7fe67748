//! The server's side of the registration.

use std::fmt;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, HeaderValue, StatusCode};
use net::linger::Linger;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::head::{self, HeadError, MOST_HEADERS};
use super::{
    AGENT, ApplicationError, CLUSTER, LINK, PATH, PROTOCOL, Registration, SERVER, Upgraded, VERSION, is_name,
    is_version,
};
use crate::ClusterName;
use net::prefixed::Prefixed;

/// Time for an answer of a few hundred bytes to be taken.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// A registration that waits for its answer.
pub struct Applicant<T> {
    pub registration: Registration,
    /// All headers of the request, for authentication: `Authorization` is among them.
    pub headers: HeaderMap,
    io: T,
    early: Bytes,
}

/// Why a request is not a registration, and the status of its answer.
struct Refused {
    status: StatusCode,
    error: ApplicationError,
}

/// Reads one request head, at most 16 KiB. Answers a request that is not a registration itself
/// (400, 404, 405, 426, 431).
pub async fn applicant<T>(mut io: T, patience: Duration) -> Result<Applicant<T>, ApplicationError>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let read = timeout(patience, head::read(&mut io)).await.map_err(|_| ApplicationError::Timeout(patience))?;
    let judged = match read {
        Ok((head, early)) => judge(&head).map(|(registration, headers)| (registration, headers, early)),
        Err(HeadError::Io(error)) => return Err(error.into()),
        Err(error @ HeadError::TooLong) => {
            Err(Refused::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, error.to_string()))
        }
        Err(error) => Err(error.into()),
    };
    match judged {
        Ok((registration, headers, early)) => Ok(Applicant { registration, headers, io, early }),
        Err(Refused { status, error }) => {
            // The error is what counts; a failure to send it adds nothing.
            let _ = answer(io, status, &error.to_string(), None).await;
            Err(error)
        }
    }
}

fn judge(head: &[u8]) -> Result<(Registration, HeaderMap), Refused> {
    head::check_lines(head)?;
    let mut lines = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut lines);
    let complete = request.parse(head).map_err(|error| match error {
        httparse::Error::TooManyHeaders => {
            Refused::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, format!("more than {MOST_HEADERS} headers"))
        }
        error => Refused::new(StatusCode::BAD_REQUEST, error.to_string()),
    })?;
    let (true, Some(method), Some(path), Some(1)) =
        (complete.is_complete(), request.method, request.path, request.version)
    else {
        return Err(Refused::new(StatusCode::BAD_REQUEST, "not HTTP/1.1"));
    };
    if path != PATH {
        return Err(Refused::new(StatusCode::NOT_FOUND, format!("agents register at {PATH}")));
    }
    if method != "GET" {
        return Err(Refused::new(StatusCode::METHOD_NOT_ALLOWED, "agents register with GET"));
    }
    let headers = head::headers(request.headers, false)?;
    if !head::is_upgrade(&headers) {
        return Err(Refused::new(StatusCode::UPGRADE_REQUIRED, format!("agents register with Upgrade: {PROTOCOL}")));
    }
    if !headers.contains_key(HOST) {
        return Err(Refused::new(StatusCode::BAD_REQUEST, "no Host header"));
    }
    Ok((registration(&headers)?, headers))
}

fn registration(headers: &HeaderMap) -> Result<Registration, Refused> {
    let bad = |what: &str| Refused::new(StatusCode::BAD_REQUEST, format!("the {what} header is missing or malformed"));
    let word = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).ok_or_else(|| bad(name));
    let cluster = ClusterName::parse(word(CLUSTER)?)
        .map_err(|error| Refused { status: StatusCode::BAD_REQUEST, error: error.into() })?;
    let agent = word(AGENT)?;
    let link = word(LINK)?;
    let version = word(VERSION)?;
    if !is_name(agent) {
        return Err(bad(AGENT));
    }
    if !is_version(version) {
        return Err(bad(VERSION));
    }
    // `u16::from_str` takes a leading plus sign.
    let link = if link.starts_with('+') { None } else { link.parse().ok() }.ok_or_else(|| bad(LINK))?;
    Ok(Registration { cluster, agent: agent.to_owned(), link, version: version.to_owned() })
}

/// Answers, and closes in such a way that the answer is not lost.
async fn answer<T>(io: T, status: StatusCode, message: &str, retry_after: Option<Duration>) -> io::Result<()>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let reason = status.canonical_reason().unwrap_or("Refused");
    let more = match status {
        StatusCode::METHOD_NOT_ALLOWED => "allow: GET\r\n".to_owned(),
        StatusCode::UPGRADE_REQUIRED => format!("connection: upgrade\r\nupgrade: {PROTOCOL}\r\n"),
        _ => retry_after.map_or_else(String::new, |after| format!("retry-after: {}\r\n", after.as_secs().max(1))),
    };
    let close = if status == StatusCode::UPGRADE_REQUIRED { "" } else { "connection: close\r\n" };
    let response = format!(
        "HTTP/1.1 {} {reason}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n{close}{more}\r\n{message}",
        status.as_u16(),
        message.len()
    );
    let mut io = Linger::new(io);
    let told = async {
        io.write_all(response.as_bytes()).await?;
        io.flush().await?;
        io.shutdown().await
    };
    timeout(ANSWER_WITHIN, told).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

// === impl Applicant ===

impl<T: AsyncRead + AsyncWrite + Unpin> Applicant<T> {
    /// Answers 101. `server` names this process, as an agent's name does the agent's.
    pub async fn welcome(self, server: &str) -> io::Result<Upgraded<T>> {
        let Self { mut io, early, .. } = self;
        let response = format!(
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: {PROTOCOL}\r\n{SERVER}: {server}\r\n\r\n"
        );
        let told = async {
            io.write_all(response.as_bytes()).await?;
            io.flush().await
        };
        timeout(ANSWER_WITHIN, told).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        Ok(Prefixed::new(io, early))
    }

    /// Answers `status` with `message` as its text and closes. `retry_after` in whole seconds.
    pub async fn refuse(self, status: StatusCode, message: &str, retry_after: Option<Duration>) -> io::Result<()> {
        answer(self.io, status, message, retry_after).await
    }
}

impl<T> fmt::Debug for Applicant<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Applicant").field("registration", &self.registration).finish_non_exhaustive()
    }
}

// === impl Refused ===

impl Refused {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, error: ApplicationError::Malformed(message.into()) }
    }
}

impl From<HeadError> for Refused {
    fn from(error: HeadError) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error.to_string())
    }
}
