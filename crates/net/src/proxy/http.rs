//! `CONNECT` over HTTP/1.1 (RFC 9110 §9.3.6): one request and the head of one response, then bytes
//! of the destination.
//!
//! The bytes after the head belong to the destination, and are passed on. `Content-Length` and
//! `Transfer-Encoding` have no meaning in a successful response.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::{Bytes, BytesMut};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use super::{Credentials, Refusal};
use crate::dial::HostPort;
use crate::head::{self, HeadError};

/// Most bytes that a proxy may send until the end of its response head, including interim
/// responses.
const MOST_HEAD: usize = 16 * 1024;
/// Most header lines of a response.
const MOST_LINES: usize = 100;
/// Most characters kept of a reason phrase.
const MOST_REASON: usize = 120;

/// A response's head.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    reason: String,
}

/// Asks for `destination`. Returns the bytes that followed the proxy's response.
pub(super) async fn connect<S>(
    stream: &mut S,
    destination: HostPort<'_>,
    credentials: Option<&Credentials>,
) -> Result<Bytes, Refusal>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let basic = credentials.map(Credentials::basic);
    let authorization = basic
        .as_ref()
        .map_or_else(String::new, |basic| format!("Proxy-Authorization: Basic {}\r\n", basic.expose_secret()));
    let request = format!("CONNECT {destination} HTTP/1.1\r\nHost: {destination}\r\n{authorization}\r\n");
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let (answer, early) = answer(stream).await?;
    match answer.status {
        200..=299 => Ok(early),
        407 if credentials.is_some() => Err(Refusal::CredentialsRefused),
        407 => Err(Refusal::CredentialsWanted),
        status => {
            // Omits a reason phrase that repeats our credentials, so that they are not printed.
            let told = credentials.zip(basic).is_some_and(|(credentials, basic)| {
                let said = |secret: &SecretString| answer.reason.contains(secret.expose_secret());
                said(&basic) || said(&credentials.password)
            });
            Err(Refusal::Status { status, reason: if told { String::new() } else { answer.reason } })
        }
    }
}

/// The head of the final response, and the bytes after it.
async fn answer<S: AsyncRead + Unpin>(stream: &mut S) -> Result<(Answer, Bytes), Refusal> {
    let mut received = BytesMut::with_capacity(1024);
    let mut room = MOST_HEAD;
    loop {
        let head = head::read(stream, &mut received, room).await.map_err(|error| match error {
            HeadError::TooLong(_) => Refusal::TooLarge(MOST_HEAD),
            HeadError::Closed => Refusal::Closed,
            HeadError::Io(error) => error.into(),
        })?;
        room -= head.len();
        let answer = parse(&head)?;
        // Interim responses may precede any final one (RFC 9110 §15.2). A 101 is final, because no
        // upgrade was requested.
        if !(100..=199).contains(&answer.status) || answer.status == 101 {
            return Ok((answer, received.freeze()));
        }
    }
}

fn parse(head: &[u8]) -> Result<Answer, Refusal> {
    let mut lines = [httparse::EMPTY_HEADER; MOST_LINES];
    let mut response = httparse::Response::new(&mut lines);
    let malformed = |what| Refusal::Malformed { protocol: "HTTP/1.1", what };
    match response.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Err(malformed("empty head")),
        Err(httparse::Error::TooManyHeaders) => return Err(malformed("too many header lines")),
        Err(_) => return Err(malformed("no response head")),
    }
    let reason = response.reason.unwrap_or_default().chars().filter(|c| !c.is_control()).take(MOST_REASON).collect();
    Ok(Answer { status: response.code.unwrap_or_default(), reason })
}

// === impl Credentials ===

impl Credentials {
    fn basic(&self) -> SecretString {
        BASE64_STANDARD.encode(format!("{}:{}", self.user, self.password.expose_secret())).into()
    }
}

#[cfg(test)]
mod tests;
