//! The frontends' Unix socket. The file's mode decides which users may connect. There is no TLS, so
//! the client's first bytes show whether it uses HTTP/1.1 or HTTP/2.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use bytes::BytesMut;
use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, Interest};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::socket_file::SocketFile;
use super::{Permits, connection};
use crate::egress::{self, Client};
use crate::relay::Origin;
use crate::shared::Shared;

/// First bytes of an HTTP/2 client (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Size of the first read, in bytes: enough for most heads.
const HEAD: usize = 512;

/// A bound socket and its file.
pub struct Listener {
    /// The listening socket, registered with tokio as a stream: see [`accept`].
    socket: UnixStream,
    file: SocketFile,
    permits: Permits,
    shared: Shared,
}

// === impl Listener ===

impl Listener {
    pub fn bind(path: &Path, shared: Shared, permits: Permits) -> anyhow::Result<Self> {
        let (socket, file) = SocketFile::bind(path)?;
        Ok(Self { socket: UnixStream::from_std(OwnedFd::from(socket).into())?, file, permits, shared })
    }

    /// Accepts until the server drains, then removes the file.
    pub async fn run(self) {
        let Self { socket, file, permits, shared } = self;
        let next = || async {
            let permit = permits.enter().await;
            Ok((accept(&socket).await?, permit))
        };
        let take = |(stream, permit)| {
            let (shared, guard) = (shared.clone(), shared.drain.guard());
            tokio::spawn(async move {
                serve(shared, stream).await;
                drop((permit, guard));
            });
        };
        let accepting = net::accept::each("frontends", next, take);
        shared.drain.soft_token().run_until_cancelled(accepting).await;
        // The file goes first, so that no client finds it and is refused.
        drop(file);
        drop(socket);
    }
}

/// Accepts a stream whose readiness tokio learns from the kernel alone. tokio's own listener marks
/// a new stream as ready without an event, and then the stream's first event can arrive at any
/// later moment. Registering that stream anew costs two system calls. So tokio only watches this
/// listener.
async fn accept(listener: &UnixStream) -> io::Result<UnixStream> {
    let (stream, _) = listener.async_io(Interest::READABLE, || SockRef::from(listener).accept()).await?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(OwnedFd::from(stream).into())
}

async fn serve(shared: Shared, mut stream: UnixStream) {
    let origin = Origin::local(stream.peer_cred().ok());
    let mut read = BytesMut::with_capacity(HEAD);
    let http2 = match timeout(egress::HEAD_TIMEOUT, sniff(&mut stream, &mut read)).await {
        Ok(Some(http2)) => http2,
        Ok(None) => return shared.metrics.turned_away("closed"),
        Err(_) => return shared.metrics.turned_away("slow"),
    };
    let connected = shared.metrics.connected("uds", if http2 { "h2" } else { "http/1.1" });
    // Boxed, so that neither branch holds memory for the other.
    if http2 {
        let stream = Client::early(stream, read.freeze());
        Box::pin(connection::http2(shared, origin, stream)).await;
    } else {
        Box::pin(connection::http1(shared, origin, stream, read)).await;
    }
    drop(connected);
}

/// Whether the client speaks HTTP/2; `None` if it closed before that was clear. `read` holds the
/// bytes read so far.
async fn sniff(stream: &mut UnixStream, read: &mut BytesMut) -> Option<bool> {
    loop {
        let length = read.len().min(PREFACE.len());
        if read[..length] != PREFACE[..length] {
            return Some(false);
        }
        if length == PREFACE.len() {
            return Some(true);
        }
        // The parser that reads on enforces the head's limit.
        match stream.take(1024).read_buf(read).await {
            Ok(0) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    async fn sniffed(said: &[u8]) -> Option<bool> {
        let (mut client, mut server) = UnixStream::pair().expect("a pair");
        client.write_all(said).await.expect("sent");
        drop(client);
        let mut read = BytesMut::new();
        let http2 = sniff(&mut server, &mut read).await;
        assert!(said.starts_with(&read));
        http2
    }

    #[tokio::test]
    async fn http2_is_told_from_http1_by_its_preface() {
        assert_eq!(sniffed(PREFACE).await, Some(true));
        assert_eq!(sniffed(b"CONNECT a:1 HTTP/1.1\r\n").await, Some(false));
        assert_eq!(sniffed(b"PRI * HTTP/1.1\r\n\r\n").await, Some(false));
        assert_eq!(sniffed(b"PRI * HT").await, None);
        assert_eq!(sniffed(b"").await, None);
    }
}
