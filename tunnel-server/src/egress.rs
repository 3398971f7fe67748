//! The HTTP/1.1 front: serves one `CONNECT` per connection, as kube-apiserver's egress selector
//! sends it, and then relays bytes.
//!
//! `k8s.io/apiserver/pkg/server/egressselector/egress_selector.go` reads one response. It quotes
//! only the status line of a response other than 200, so the reason is in the reason phrase too. It
//! closes the connection if a single byte arrives in the same read as the response, so the member's
//! bytes wait until the client has read the 200.

mod answer;
mod client;
pub mod head;

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use net::drain::Drain;
use net::linger::Linger;
use net::words;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use self::answer::Answer;
pub use self::client::{Client, Front};
use self::head::{HeadError, Request};
use crate::relay::{self, Origin};
use crate::shared::Shared;

/// Timeout for the request's head, from the start of the connection.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Wait for a request on its way when the server shuts down, so that connections without one do not
/// delay the end.
const ON_ITS_WAY: Duration = Duration::from_secs(1);
/// Longest head, in bytes: many times what a frontend sends.
const LONGEST_HEAD: usize = 16 * 1024;
/// Timeout for sending an answer to a client that does not read.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Most bytes kept of a client that sends before the answer; the rest waits in its socket.
const MOST_EARLY: usize = 64 * 1024;

/// Why a client gets no tunnel.
enum NotServed {
    Answered(Answer),
    /// The client is gone, or sent no request.
    Silent(&'static str),
}

/// Serves a connection until its tunnel has ended. `read` holds the bytes already read from it.
pub async fn serve<S: Front>(shared: &Shared, origin: &Origin, mut io: S, mut read: BytesMut) {
    // Each phase is boxed: a tunnel lasts, and must not hold the memory of the phases before it.
    match Box::pin(open(shared, origin, &mut io, &mut read)).await {
        Ok(relayed) => {
            if let Some(client) = Box::pin(start(io, read)).await {
                relayed.bridge(shared, client).await;
            }
        }
        // The server need not wait longer for a client that does not read the answer.
        Err(NotServed::Answered(answer)) => drop(Box::pin(timeout(ANSWER_TIMEOUT, last_words(io, &answer))).await),
        Err(NotServed::Silent(_)) => {}
    }
}

/// Reads the request and opens the stream it asks for.
async fn open<S: AsyncRead + Unpin>(
    shared: &Shared,
    origin: &Origin,
    io: &mut S,
    read: &mut BytesMut,
) -> Result<relay::Relayed, NotServed> {
    let heard = tokio::select! {
        heard = timeout(HEAD_TIMEOUT, head(io, read)) => heard.unwrap_or(Err(NotServed::Silent("slow"))),
        () = shutdown(&shared.drain) => Err(NotServed::Silent("shutdown")),
    };
    match heard {
        Ok(request) => connect(shared, origin, io, &request, read).await,
        Err(unserved) => {
            shared.metrics.turned_away(unserved.as_str());
            tracing::debug!(frontend = %origin, reason = unserved.as_str(), "not a CONNECT that can be served");
            Err(unserved)
        }
    }
}

/// Reads until `read` holds a head. The bytes behind the head stay in `read`.
async fn head<S: AsyncRead + Unpin>(io: &mut S, read: &mut BytesMut) -> Result<Request, NotServed> {
    loop {
        match head::parse(read) {
            Ok(Some((request, length))) => {
                let _ = read.split_to(length);
                return Ok(request);
            }
            Ok(None) if read.len() >= LONGEST_HEAD => {
                return Err(HeadError::TooLarge(LONGEST_HEAD).into());
            }
            Ok(None) => {}
            Err(error) => return Err(error.into()),
        }
        // No more than the longest head, so that one client cannot fill memory with bytes behind
        // its head.
        match io.take((LONGEST_HEAD - read.len()) as u64).read_buf(read).await {
            Ok(0) => return Err(NotServed::Silent("closed")),
            Ok(_) => {}
            Err(_) => return Err(NotServed::Silent("broken")),
        }
    }
}

/// Completes when the server shuts down and requests on their way have had [`ON_ITS_WAY`].
async fn shutdown(drain: &Drain) {
    drain.soft().await;
    tokio::time::sleep(ON_ITS_WAY).await;
}

/// Opens the stream, unless the client closes first.
async fn connect<S: AsyncRead + Unpin>(
    shared: &Shared,
    origin: &Origin,
    io: &mut S,
    request: &Request,
    early: &mut BytesMut,
) -> Result<relay::Relayed, NotServed> {
    let opening = relay::open(shared, origin, request.cluster.as_ref(), &request.destination);
    tokio::select! {
        biased;
        opened = opening => opened.map_err(|refusal| NotServed::Answered(Answer::refusal(&refusal))),
        () = gone(io, early) => Err(NotServed::Silent("cancelled")),
    }
}

/// Completes when the connection breaks, or when the client closes without bytes behind its head. A
/// client that sent some may have closed only its write side, so it still gets its answer.
async fn gone<S: AsyncRead + Unpin>(io: &mut S, early: &mut BytesMut) {
    while early.len() < MOST_EARLY {
        match io.take((MOST_EARLY - early.len()) as u64).read_buf(early).await {
            Ok(0) if !early.is_empty() => break,
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
    std::future::pending::<()>().await;
}

/// Sends the 200 to the client.
async fn start<S: Front>(io: S, early: BytesMut) -> Option<Client<S>> {
    // An empty rest would keep the head's buffer for as long as the tunnel lasts.
    let early = if early.is_empty() { Bytes::new() } else { early.freeze() };
    match timeout(ANSWER_TIMEOUT, Client::connected(io, early, answer::ESTABLISHED)).await {
        Ok(Ok(client)) => return Some(client),
        Ok(Err(error)) => {
            tracing::debug!(error = words::io(&error), "the client left before the answer to its CONNECT");
        }
        Err(_) => tracing::debug!("the client did not read the answer to its CONNECT"),
    }
    None
}

async fn last_words<S: AsyncRead + AsyncWrite + Unpin>(io: S, answer: &Answer) -> io::Result<()> {
    let mut io = Linger::new(io);
    io.write_all(&answer.bytes()).await?;
    io.flush().await?;
    io.shutdown().await
}

// === impl NotServed ===

impl NotServed {
    /// The reason, as the metric's label.
    fn as_str(&self) -> &'static str {
        match self {
            Self::Answered(answer) => answer.kind(),
            Self::Silent(why) => why,
        }
    }
}

impl From<HeadError> for NotServed {
    fn from(error: HeadError) -> Self {
        Self::Answered(error.into())
    }
}

#[cfg(test)]
mod tests;
