//! An answer as it comes: its head is here, its body is read piece by piece.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use kit::client::{H1Connection, H1Head, H2Body, H2Response};
use kit::wait::{WAIT, within};

use super::{Answer, Failure, first};

/// An answer whose head has arrived. On HTTP/1.1 it borrows its connection, which is only of use
/// again after the whole body.
#[derive(Debug)]
pub struct Streamed<'a> {
    /// The status code.
    pub status: u16,
    /// The header lines.
    pub headers: HeaderMap,
    body: Body<'a>,
    /// Received by [`Streamed::line`] after the last whole line.
    rest: BytesMut,
}

#[derive(Debug)]
enum Body<'a> {
    H1(&'a mut H1Connection),
    H2(H2Body),
}

// === impl Streamed ===

impl<'a> Streamed<'a> {
    pub(super) fn h1(head: H1Head, connection: &'a mut H1Connection) -> Self {
        Self { status: head.status, headers: head.headers, body: Body::H1(connection), rest: BytesMut::new() }
    }

    pub(super) fn h2(response: H2Response) -> Self {
        let H2Response { head, body, upload: _ } = response;
        Self { status: head.status.as_u16(), headers: head.headers, body: Body::H2(body), rest: BytesMut::new() }
    }

    /// The first value of a header, if it is UTF-8.
    pub fn header(&self, name: &str) -> Option<&str> {
        first(&self.headers, name)
    }

    /// The next piece of the body, of any size; `None` at its proper end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        if !self.rest.is_empty() {
            return Ok(Some(self.rest.split().freeze()));
        }
        match &mut self.body {
            Body::H1(connection) => Ok(connection.chunk().await?),
            Body::H2(body) => Ok(body.chunk().await.transpose()?),
        }
    }

    /// The next line with its newline, as watches send them; `None` at the proper end.
    pub async fn line(&mut self) -> Result<Option<String>, Failure> {
        let mut read = BytesMut::new();
        loop {
            if let Some(end) = read.iter().position(|byte| *byte == b'\n') {
                self.rest = read.split_off(end + 1);
                return Ok(Some(String::from_utf8_lossy(&read).into_owned()));
            }
            match self.chunk().await? {
                Some(chunk) => read.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }

    /// The next line of a watch, which goes on.
    ///
    /// # Panics
    ///
    /// It ends, or nothing comes.
    pub async fn event(&mut self) -> String {
        let line = within(WAIT, "an event of the watch", self.line()).await.expect("the watch goes on");
        line.expect("an event")
    }

    /// Reads to the proper end.
    pub async fn whole(mut self) -> Result<Answer, Failure> {
        let mut read = BytesMut::new();
        while let Some(chunk) = self.chunk().await? {
            read.extend_from_slice(&chunk);
        }
        let trailers = match &mut self.body {
            Body::H1(connection) => connection.trailers().clone(),
            Body::H2(body) => body.trailers().await?.unwrap_or_default(),
        };
        Ok(Answer { status: self.status, headers: self.headers, body: read.freeze(), trailers })
    }
}
