//! A request body as the test sends it.

use std::time::Duration;

use bytes::Bytes;
use kit::client::{H1Connection, H1Error, H2Exchange};
use kit::wait::unless_quiet;

use super::{Answer, Failure, Streamed};
use crate::buffers::socket_buffers;

/// Bytes of one piece of [`Upload::fill`].
const PIECE: usize = 16 << 10;
/// More than all windows on the way of an upload hold together.
const WINDOWS: usize = 64 << 20;

/// A request whose head was sent and whose body is being sent.
#[derive(Debug)]
pub struct Upload<'a>(Inner<'a>);

#[derive(Debug)]
enum Inner<'a> {
    H1 { connection: &'a mut H1Connection, chunked: bool },
    H2(H2Exchange),
}

// === impl Upload ===

impl<'a> Upload<'a> {
    pub(super) fn h1(connection: &'a mut H1Connection, chunked: bool) -> Self {
        Self(Inner::H1 { connection, chunked })
    }

    pub(super) fn h2(exchange: H2Exchange) -> Self {
        Self(Inner::H2(exchange))
    }

    /// Sends bytes, waiting for room within the kit's limit.
    pub async fn send(&mut self, data: impl Into<Bytes>) -> Result<(), Failure> {
        let data = data.into();
        match &mut self.0 {
            Inner::H1 { connection, chunked: true } => Ok(connection.send_chunk(&data).await.map_err(H1Error::Io)?),
            Inner::H1 { connection, chunked: false } => Ok(connection.send(&data).await.map_err(H1Error::Io)?),
            Inner::H2(exchange) => Ok(exchange.send(data, false).await?),
        }
    }

    /// Sends zero bytes until there has been no room for `quiet`; returns how many were taken. On
    /// HTTP/1.1 nothing else can be sent afterwards: the last piece may have gone out in part.
    pub async fn fill(&mut self, quiet: Duration) -> Result<usize, Failure> {
        let Inner::H1 { connection, chunked } = &mut self.0 else {
            let Inner::H2(exchange) = &mut self.0 else { unreachable!("there are two versions") };
            return Ok(exchange.fill(quiet).await?);
        };
        let piece = vec![0; PIECE];
        // More than all buffers hold: nothing holds it back.
        let most = WINDOWS + 2 * socket_buffers();
        let mut sent = 0;
        loop {
            let sending =
                async { if *chunked { connection.send_chunk(&piece).await } else { connection.send(&piece).await } };
            match unless_quiet(quiet, sending).await {
                Some(taken) => taken.map_err(H1Error::Io)?,
                None => return Ok(sent),
            }
            sent += PIECE;
            assert!(sent <= most, "nobody holds this upload back");
        }
    }

    /// Ends the body properly and waits for the head of the answer.
    pub async fn finish(mut self) -> Result<Streamed<'a>, Failure> {
        match &mut self.0 {
            Inner::H1 { connection, chunked: true } => connection.send_chunk(b"").await.map_err(H1Error::Io)?,
            Inner::H1 { .. } => {}
            Inner::H2(exchange) => exchange.send(Bytes::new(), true).await?,
        }
        self.head().await
    }

    /// Waits for the head of the answer, leaving the body as it is.
    pub async fn head(self) -> Result<Streamed<'a>, Failure> {
        match self.0 {
            Inner::H1 { connection, .. } => {
                let head = connection.head().await?;
                Ok(Streamed::h1(head, connection))
            }
            Inner::H2(exchange) => Ok(Streamed::h2(exchange.response().await?)),
        }
    }

    /// Ends the body properly and reads the whole answer.
    pub async fn answer(self) -> Result<Answer, Failure> {
        self.finish().await?.whole().await
    }
}
