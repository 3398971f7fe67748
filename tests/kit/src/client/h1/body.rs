//! Reading an HTTP/1.1 body by its framing (RFC 9112 section 6), strict about its end.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING};

use super::{H1Connection, H1Error, H1Head};

/// How the rest of a body is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// Nothing follows.
    None,
    /// This many bytes follow.
    Length { left: usize, done: usize },
    /// Chunks follow.
    Chunked { done: usize },
    /// Everything up to the end of the connection.
    UntilClose,
}

// === impl Framing ===

impl Framing {
    pub(super) fn of(head: &H1Head) -> Result<Self, H1Error> {
        if matches!(head.status, 100..=199 | 204 | 304) {
            return Ok(Self::None);
        }
        if let Some(coding) = head.headers.get(TRANSFER_ENCODING) {
            let is_chunked = coding.as_bytes().eq_ignore_ascii_case(b"chunked");
            return if is_chunked { Ok(Self::Chunked { done: 0 }) } else { Ok(Self::UntilClose) };
        }
        let Some(length) = head.headers.get(CONTENT_LENGTH) else { return Ok(Self::UntilClose) };
        let length = length.to_str().ok().and_then(|text| text.parse().ok());
        match length {
            Some(0) => Ok(Self::None),
            Some(left) => Ok(Self::Length { left, done: 0 }),
            None => Err(H1Error::Malformed("Content-Length is not a number".to_owned())),
        }
    }
}

// === impl H1Connection ===

impl H1Connection {
    /// The next piece of the body; `None` at its proper end. One chunk is one piece when the body
    /// is chunked.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, H1Error> {
        match self.framing {
            Framing::None => Ok(None),
            Framing::UntilClose => {
                let bytes = self.read().await?;
                Ok((!bytes.is_empty()).then_some(bytes))
            }
            Framing::Length { left, done } => {
                let bytes = self.some(left, done).await?;
                let (left, done) = (left - bytes.len(), done + bytes.len());
                self.framing = if left == 0 { Framing::None } else { Framing::Length { left, done } };
                Ok(Some(bytes))
            }
            Framing::Chunked { done } => self.chunked(done).await,
        }
    }

    async fn chunked(&mut self, done: usize) -> Result<Option<Bytes>, H1Error> {
        let size = self.chunk_size(done).await?;
        if size == 0 {
            self.read_trailers(done).await?;
            self.framing = Framing::None;
            return Ok(None);
        }
        while self.leftover().len() < size + 2 {
            self.more(done).await?;
        }
        let data = self.read_exact(size).await?;
        if self.read_exact(2).await? != b"\r\n"[..] {
            return Err(H1Error::Malformed("a chunk does not end where it says".to_owned()));
        }
        self.framing = Framing::Chunked { done: done + size };
        Ok(Some(data))
    }

    async fn chunk_size(&mut self, done: usize) -> Result<usize, H1Error> {
        loop {
            match httparse::parse_chunk_size(self.leftover()) {
                Ok(httparse::Status::Complete((line, size))) => {
                    self.consume(line);
                    return usize::try_from(size).map_err(|error| H1Error::Malformed(error.to_string()));
                }
                Ok(httparse::Status::Partial) => self.more(done).await?,
                Err(error) => return Err(H1Error::Malformed(error.to_string())),
            }
        }
    }

    async fn read_trailers(&mut self, done: usize) -> Result<(), H1Error> {
        let mut trailers = HeaderMap::new();
        loop {
            let mut lines = [httparse::EMPTY_HEADER; 64];
            let parsed = httparse::parse_headers(self.leftover(), &mut lines);
            match parsed.map_err(|error| H1Error::Malformed(error.to_string()))? {
                httparse::Status::Partial => self.more(done).await?,
                httparse::Status::Complete((length, lines)) => {
                    for line in lines {
                        let name = http::HeaderName::from_bytes(line.name.as_bytes());
                        let value = http::HeaderValue::from_bytes(line.value);
                        if let (Ok(name), Ok(value)) = (name, value) {
                            trailers.append(name, value);
                        }
                    }
                    self.consume(length);
                    self.trailers = trailers;
                    return Ok(());
                }
            }
        }
    }

    /// At least one and at most `left` bytes.
    async fn some(&mut self, left: usize, done: usize) -> Result<Bytes, H1Error> {
        if self.leftover().is_empty() {
            self.more(done).await?;
        }
        let available = self.leftover().len().min(left);
        Ok(self.read_exact(available).await?)
    }

    /// Receives more bytes; an end here is a cut body.
    async fn more(&mut self, done: usize) -> Result<(), H1Error> {
        match self.fill().await? {
            0 => Err(H1Error::Truncated(done)),
            _ => Ok(()),
        }
    }
}
