//! HTTP/1.1 by hand: the test writes the bytes, the answer is parsed just enough to be judged.

mod body;

use std::io;

use bytes::{Buf as _, Bytes, BytesMut};
use http::HeaderMap;
use thiserror::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use self::body::Framing;
use super::BoxedIo;
use crate::wait::{WAIT, within};

/// Header lines accepted in a response.
const MAX_HEADERS: usize = 8192;
/// Bytes of response head accepted.
const MAX_HEAD: usize = 2 << 20;

/// Why an HTTP/1.1 exchange failed.
#[derive(Debug, Error)]
pub enum H1Error {
    /// The connection failed, by a reset for example.
    #[error("connection: {0}")]
    Io(#[from] io::Error),
    /// The server closed the connection before a whole response head.
    #[error("closed before the response head was complete")]
    NoAnswer,
    /// The server closed the connection in the middle of a body.
    #[error("the body was cut after {0} bytes")]
    Truncated(usize),
    /// The received bytes are not HTTP/1.1.
    #[error("malformed response: {0}")]
    Malformed(String),
}

/// The head of a response.
#[derive(Clone, Debug)]
pub struct H1Head {
    /// The status code.
    pub status: u16,
    /// The reason phrase.
    pub reason: String,
    /// The header lines; lines of one name keep their order.
    pub headers: HeaderMap,
    /// The head byte for byte, with its blank line.
    pub raw: Bytes,
}

/// One HTTP/1.1 connection, or any byte stream: nothing stops a test from sending and reading what
/// it likes.
pub struct H1Connection {
    io: BoxedIo,
    buffer: BytesMut,
    framing: Framing,
    /// The last request was a HEAD or CONNECT: no body follows the head.
    bodiless: bool,
    trailers: HeaderMap,
}

// === impl H1Head ===

impl H1Head {
    /// The first value of a header, if it is UTF-8.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| std::str::from_utf8(value.as_bytes()).ok())
    }

    fn parse(raw: &Bytes) -> Result<Self, H1Error> {
        let malformed =
            |why: &dyn std::fmt::Display| H1Error::Malformed(format!("{why}: {}", String::from_utf8_lossy(raw)));
        let mut lines = vec![httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut lines);
        response.parse(raw).map_err(|error| malformed(&error))?;
        let mut headers = HeaderMap::new();
        for line in response.headers.iter() {
            let name = http::HeaderName::from_bytes(line.name.as_bytes()).map_err(|error| malformed(&error))?;
            headers.append(name, http::HeaderValue::from_bytes(line.value).map_err(|error| malformed(&error))?);
        }
        let status = response.code.ok_or_else(|| malformed(&"no status"))?;
        let reason = response.reason.unwrap_or_default().to_owned();
        Ok(Self { status, reason, headers, raw: raw.clone() })
    }
}

// === impl H1Connection ===

impl H1Connection {
    /// Speaks over `io`.
    pub fn over(io: BoxedIo) -> Self {
        Self { io, buffer: BytesMut::new(), framing: Framing::None, bodiless: false, trailers: HeaderMap::new() }
    }

    /// Sends these bytes in one write.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        let write = async {
            self.io.write_all(bytes.as_ref()).await?;
            self.io.flush().await
        };
        within(WAIT, "room to write", write).await
    }

    /// Sends a request head with `Host: localhost` and these headers, and `body` with its
    /// `Content-Length` unless it is empty.
    pub async fn request(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<()> {
        let mut head = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n");
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        if !body.is_empty() {
            head.extend(["Content-Length: ", &body.len().to_string(), "\r\n"]);
        }
        head.push_str("\r\n");
        self.bodiless = matches!(method, "HEAD" | "CONNECT");
        self.send([head.as_bytes(), body].concat()).await
    }

    /// Sends one chunk of a chunked body; an empty one ends it.
    pub async fn send_chunk(&mut self, data: &[u8]) -> io::Result<()> {
        let size = format!("{:x}\r\n", data.len());
        self.send([size.as_bytes(), data, b"\r\n"].concat()).await
    }

    /// Reads the head of a response (of a 1xx one, too).
    pub async fn head(&mut self) -> Result<H1Head, H1Error> {
        const BLANK_LINE: &[u8] = b"\r\n\r\n";
        loop {
            if let Some(start) = self.buffer.windows(BLANK_LINE.len()).position(|window| window == BLANK_LINE) {
                let raw = self.buffer.split_to(start + BLANK_LINE.len()).freeze();
                let head = H1Head::parse(&raw)?;
                self.framing = if self.bodiless { Framing::None } else { Framing::of(&head)? };
                return Ok(head);
            }
            if self.buffer.len() > MAX_HEAD {
                return Err(H1Error::Malformed(format!("a head of more than {MAX_HEAD} bytes")));
            }
            if self.fill().await? == 0 {
                return Err(H1Error::NoAnswer);
            }
        }
    }

    /// Reads the rest of the body.
    pub async fn body(&mut self) -> Result<Bytes, H1Error> {
        let mut body = BytesMut::new();
        while let Some(chunk) = self.chunk().await? {
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }

    /// Sends a request and reads its whole response.
    pub async fn call(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<(H1Head, Bytes), H1Error> {
        self.request(method, target, headers, body).await?;
        let head = self.head().await?;
        let body = self.body().await?;
        Ok((head, body))
    }

    /// Sends an upgrade request and reads the head of its response. After a 101 this connection is
    /// the upgraded byte stream: [`H1Connection::read`] starts with the bytes that came together
    /// with the head.
    pub async fn upgrade(
        &mut self,
        method: &str,
        target: &str,
        protocol: &str,
        headers: &[(&str, &str)],
    ) -> Result<H1Head, H1Error> {
        let headers = [&[("Connection", "Upgrade"), ("Upgrade", protocol)], headers].concat();
        self.request(method, target, &headers, b"").await?;
        self.head().await
    }

    /// The trailers of the chunked body that was read to its end.
    pub fn trailers(&self) -> &HeaderMap {
        &self.trailers
    }

    /// Bytes received but not consumed.
    pub fn leftover(&self) -> &[u8] {
        &self.buffer
    }

    /// Reads some raw bytes; empty at the end of the stream.
    pub async fn read(&mut self) -> io::Result<Bytes> {
        if self.buffer.is_empty() {
            self.fill().await?;
        }
        Ok(self.buffer.split().freeze())
    }

    /// Reads exactly `bytes` raw bytes.
    pub async fn read_exact(&mut self, bytes: usize) -> io::Result<Bytes> {
        while self.buffer.len() < bytes {
            if self.fill().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.buffer.split_to(bytes).freeze())
    }

    /// Reads raw bytes to the end of the stream.
    pub async fn read_to_end(&mut self) -> io::Result<Bytes> {
        while self.fill().await? > 0 {}
        Ok(self.buffer.split().freeze())
    }

    /// Ends the sending side, `close_notify` included.
    pub async fn shutdown(&mut self) -> io::Result<()> {
        within(WAIT, "room to close", self.io.shutdown()).await
    }

    /// The byte stream, and the received bytes that were not consumed.
    pub fn into_parts(self) -> (BoxedIo, Bytes) {
        (self.io, self.buffer.freeze())
    }

    async fn fill(&mut self) -> io::Result<usize> {
        within(WAIT, "bytes from the server", self.io.read_buf(&mut self.buffer)).await
    }

    fn consume(&mut self, bytes: usize) {
        self.buffer.advance(bytes);
    }
}

impl std::fmt::Debug for H1Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("H1Connection")
            .field("leftover", &self.buffer.len())
            .field("framing", &self.framing)
            .finish_non_exhaustive()
    }
}
