//! The agent's side of the registration.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::head::{self, HeadError, MOST_HEADERS};
use super::{
    AGENT, CLUSTER, LINK, Malformed, PATH, PROTOCOL, RegisterError, Registered, Registration, SERVER, VERSION,
};
use net::prefixed::Prefixed;

/// Longest text of a refusal, in bytes as sent.
const LONGEST_TEXT: usize = 2048;
/// Characters kept of a refusal's text.
const LONGEST_MESSAGE: usize = 512;
/// Longest `Retry-After` that is kept. A longer one means "not today".
const LONGEST_RETRY: Duration = Duration::from_hours(24);

/// Registers an agent on `io`. `host` goes into `Host`. Takes at most `patience`.
pub async fn register<T>(
    mut io: T,
    host: &str,
    registration: &Registration,
    token: Option<&SecretString>,
    patience: Duration,
) -> Result<Registered<T>, RegisterError>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let request = request(host, registration, token)?;
    let exchange = async {
        io.write_all(request.expose_secret().as_bytes()).await?;
        io.flush().await?;
        let (head, early) = head::read(&mut io).await.map_err(refuted)?;
        judge(&mut io, &head, early).await
    };
    let (server, early) = timeout(patience, exchange).await.map_err(|_| RegisterError::Timeout(patience))??;
    Ok(Registered { io: Prefixed::new(io, early), server })
}

fn request(
    host: &str,
    registration: &Registration,
    token: Option<&SecretString>,
) -> Result<SecretString, RegisterError> {
    let Registration { cluster, agent, link, version } = registration;
    if host.is_empty() || !host.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(RegisterError::Unfit("the server's host"));
    }
    if !super::is_name(agent) {
        return Err(RegisterError::Unfit("the agent's name"));
    }
    if !super::is_version(version) {
        return Err(RegisterError::Unfit("the version"));
    }
    let authorization = match token.map(ExposeSecret::expose_secret) {
        Some(token) if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
            return Err(RegisterError::Unfit("the token: it is empty or has characters that no token has"));
        }
        Some(token) => format!("authorization: Bearer {token}\r\n"),
        None => String::new(),
    };
    Ok(format!(
        "GET {PATH} HTTP/1.1\r\nhost: {host}\r\nconnection: upgrade\r\nupgrade: {PROTOCOL}\r\n\
         {CLUSTER}: {cluster}\r\n{AGENT}: {agent}\r\n{LINK}: {link}\r\n{VERSION}: {version}\r\n{authorization}\r\n"
    )
    .into())
}

/// The server's name and the bytes after the answer's head, or why there is no link.
async fn judge<T>(io: &mut T, head: &[u8], early: Bytes) -> Result<(String, Bytes), RegisterError>
where
    T: AsyncRead + Unpin,
{
    head::check_lines(head).map_err(refuted)?;
    let mut lines = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut response = httparse::Response::new(&mut lines);
    let complete = response.parse(head).map_err(Malformed::Http)?;
    let (true, Some(code), Some(1)) = (complete.is_complete(), response.code, response.version) else {
        return Err(unexpected("not HTTP/1.1"));
    };
    let status = StatusCode::from_u16(code).map_err(Malformed::Status)?;
    let headers = head::headers(response.headers, status != StatusCode::SWITCHING_PROTOCOLS).map_err(refuted)?;
    if status.is_informational() {
        return welcome(status, &headers).map(|server| (server, early));
    }
    let text = text(io, &headers, early).await;
    let reason = status.canonical_reason().unwrap_or_default();
    let message = text.map(|text| clean(&text)).filter(|text| !text.is_empty()).unwrap_or_else(|| reason.to_owned());
    Err(RegisterError::Refused { status, message, retry_after: retry_after(&headers) })
}

fn welcome(status: StatusCode, headers: &HeaderMap) -> Result<String, RegisterError> {
    if status != StatusCode::SWITCHING_PROTOCOLS {
        return Err(unexpected(format!("an interim answer, {status}")));
    }
    if !head::is_upgrade(headers) {
        return Err(unexpected(format!("101, but not to {PROTOCOL}")));
    }
    let server = headers.get(SERVER).and_then(|name| name.to_str().ok()).filter(|name| super::is_name(name));
    server.map(ToOwned::to_owned).ok_or_else(|| unexpected(format!("no {SERVER} header, or a bad one")))
}

/// The body of an answer, if it is plain text of bounded length: a load balancer's page is of no
/// use in a log.
async fn text<T: AsyncRead + Unpin>(io: &mut T, headers: &HeaderMap, early: Bytes) -> Option<Vec<u8>> {
    let word = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let length: usize = word(CONTENT_LENGTH)?.parse().ok()?;
    if !word(CONTENT_TYPE)?.starts_with("text/plain") || length > LONGEST_TEXT {
        return None;
    }
    let mut text = early.to_vec();
    text.truncate(length);
    // A text that is cut short is better than none.
    let _ = io.take((length - text.len()) as u64).read_to_end(&mut text).await;
    Some(text)
}

fn clean(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.trim().chars().filter(|character| !character.is_control()).take(LONGEST_MESSAGE).collect()
}

/// Reads whole seconds, but no date (RFC 9110 §10.2.3).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_RETRY))
}

fn refuted(error: HeadError) -> RegisterError {
    match error {
        HeadError::Io(error) => error.into(),
        error => unexpected(error.to_string()),
    }
}

fn unexpected(what: impl Into<String>) -> RegisterError {
    Malformed::Unexpected(what.into()).into()
}
