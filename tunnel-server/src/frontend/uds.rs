//! The Unix socket. Its file's mode says who may connect; there is no TLS, so which HTTP is spoken
//! is seen from the first bytes.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use bytes::BytesMut;
use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, Interest};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::socket_file::SocketFile;
use super::{Room, connection};
use crate::egress::{self, Client};
use crate::relay::Origin;
use crate::shared::Shared;

/// What an HTTP/2 client says first (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Room for the first read: most heads, whole.
const HEAD: usize = 512;

/// A bound socket and its file.
pub struct Listener {
    /// Listens, in the guise of a stream: see [`accept`].
    socket: UnixStream,
    file: SocketFile,
    room: Room,
    shared: Shared,
}

// === impl Listener ===

impl Listener {
    pub fn bind(path: &Path, shared: Shared, room: Room) -> anyhow::Result<Self> {
        let (socket, file) = SocketFile::bind(path)?;
        Ok(Self { socket: UnixStream::from_std(OwnedFd::from(socket).into())?, file, room, shared })
    }

    /// Accepts until the server drains; then the file is gone.
    pub async fn run(self) {
        let Self { socket, file, room, shared } = self;
        let next = || async {
            let permit = room.enter().await;
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
        // First the file: nobody shall find it and be refused.
        drop(file);
        drop(socket);
    }
}

/// A stream that is known by what the kernel says of it. One from tokio's own listener is taken for
/// ready unheard, and the first news of it is heard at any later moment; to register it anew costs
/// two system calls. So the listener is one that tokio only watches.
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
    // Boxed: neither carries the other's room around.
    if http2 {
        let stream = Client::early(stream, read.freeze());
        Box::pin(connection::http2(shared, origin, stream)).await;
    } else {
        Box::pin(connection::http1(shared, origin, stream, read)).await;
    }
    drop(connected);
}

/// Whether the client speaks HTTP/2; `None` if it left before that could be said. What was read is
/// in `read`.
async fn sniff(stream: &mut UnixStream, read: &mut BytesMut) -> Option<bool> {
    loop {
        let length = read.len().min(PREFACE.len());
        if read[..length] != PREFACE[..length] {
            return Some(false);
        }
        if length == PREFACE.len() {
            return Some(true);
        }
        // The head's limit is kept by who reads on.
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
