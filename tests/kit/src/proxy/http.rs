//! The server's side of `CONNECT`.

use std::io;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::Request;

pub(super) const GRANTED: &[u8] = b"HTTP/1.1 200 Connection established\r\nVia: 1.1 kit\r\n\r\n";
pub(super) const UNAUTHENTICATED: &[u8] =
    b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"kit\"\r\nContent-Length: 0\r\n\r\n";
pub(super) const UNREACHABLE: &[u8] = b"HTTP/1.1 502 Destination down\r\nContent-Length: 0\r\n\r\n";

/// Reads a request's head, and no byte more.
pub(super) async fn request<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Request> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8(head).map_err(io::Error::other)?;
    let mut lines = head.lines();
    let destination = lines
        .next()
        .and_then(|line| line.strip_prefix("CONNECT ")?.strip_suffix(" HTTP/1.1"))
        .ok_or_else(|| io::Error::other("not CONNECT"))?;
    let credentials = lines.find_map(|line| {
        let decoded = BASE64_STANDARD.decode(line.strip_prefix("Proxy-Authorization: Basic ")?).ok()?;
        let (user, password) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
        Some((user.to_owned(), password.to_owned()))
    });
    Ok(Request { destination: destination.to_owned(), credentials })
}
