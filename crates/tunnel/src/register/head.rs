//! Reads one HTTP/1.1 head from a connection, strictly.

use std::io;

use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue};
use net::words;
use tokio::io::AsyncRead;

use super::PROTOCOL;

/// Longest head, in bytes.
pub(super) const LONGEST: usize = 16 * 1024;
/// Most header lines.
pub(super) const MOST_HEADERS: usize = 64;

/// Why there is no head.
#[derive(Debug, thiserror::Error)]
pub(super) enum HeadError {
    #[error("the head is longer than {LONGEST} bytes")]
    TooLong,
    #[error("{0}")]
    Malformed(String),
    #[error("{}", words::io(.0))]
    Io(#[from] io::Error),
}

/// Reads to the end of a head. Returns the head, and the bytes behind it from the same read.
pub(super) async fn read<T: AsyncRead + Unpin>(io: &mut T) -> Result<(Bytes, Bytes), HeadError> {
    let mut received = BytesMut::new();
    let head = net::head::read(io, &mut received, LONGEST).await.map_err(|error| match error {
        net::head::HeadError::TooLong(_) => HeadError::TooLong,
        net::head::HeadError::Closed => io::Error::from(io::ErrorKind::UnexpectedEof).into(),
        net::head::HeadError::Io(error) => error.into(),
    })?;
    Ok((head, received.freeze()))
}

/// Refuses line ends other than CRLF, which different parsers read differently.
pub(super) fn check_lines(head: &[u8]) -> Result<(), HeadError> {
    let bare = head.iter().enumerate().any(|(at, byte)| match byte {
        b'\n' => at == 0 || head[at - 1] != b'\r',
        b'\r' => head.get(at + 1) != Some(&b'\n'),
        _ => false,
    });
    if bare { Err(HeadError::Malformed("a line does not end with CRLF".into())) } else { Ok(()) }
}

/// The parsed lines as a map. Refuses relevant headers that occur twice, and an announced body
/// unless `body` allows it.
pub(super) fn headers(lines: &[httparse::Header<'_>], body: bool) -> Result<HeaderMap, HeadError> {
    let malformed = |text: &str| HeadError::Malformed(text.to_owned());
    let mut headers = HeaderMap::with_capacity(lines.len());
    for line in lines {
        let name = HeaderName::from_bytes(line.name.as_bytes()).map_err(|_| malformed("a header's name"))?;
        let mut value = HeaderValue::from_bytes(line.value).map_err(|_| malformed("a header's value"))?;
        value.set_sensitive(name == AUTHORIZATION);
        if is_single(&name) && headers.contains_key(&name) {
            return Err(HeadError::Malformed(format!("more than one {name} header")));
        }
        headers.append(name, value);
    }
    let has_body = headers.contains_key(TRANSFER_ENCODING)
        || headers.get(CONTENT_LENGTH).is_some_and(|length| length.as_bytes() != b"0");
    if has_body && !body {
        return Err(malformed("a body is announced"));
    }
    Ok(headers)
}

fn is_single(name: &HeaderName) -> bool {
    [AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE].contains(name)
        || name.as_str().starts_with("tunnel-")
}

/// Whether the head has this upgrade: `upgrade` is one of the tokens of `Connection`, and `Upgrade`
/// has nothing but this protocol. (RFC 9110 §7.8.)
pub(super) fn is_upgrade(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
    text(UPGRADE).eq_ignore_ascii_case(PROTOCOL)
        && text(CONNECTION).split(',').any(|token| token.trim().eq_ignore_ascii_case("upgrade"))
}
