//! A caller of konnectivity's gRPC frontend: one connection and one `Proxy` stream for each dial,
//! as its client library does for kube-apiserver.

mod packet;

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll, ready};

use anyhow::{Result, bail, ensure};
use bytes::{Buf as _, Bytes, BytesMut};
use http::Request;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::UnixStream;

use self::packet::{Packet, Payload};
use super::h2_stream::{self, H2Stream};

/// Longest `DATA` written.
const PIECE: usize = 32 << 10;

/// The server distinguishes pending dials by their numbers, across all callers.
static DIALS: AtomicI64 = AtomicI64::new(1);

/// A tunnelled connection over `T`, which is the body of a `Proxy` call in both directions.
pub struct Grpc<T> {
    io: T,
    connection: i64,
    received: BytesMut,
    unread: Bytes,
    unsent: BytesMut,
    ended: bool,
}

/// Dials `address` over `socket`, a fresh connection to the server.
pub async fn dial(socket: UnixStream, address: &str) -> Result<Grpc<H2Stream>> {
    let (mut sender, connection) = h2_stream::client().handshake::<_, Bytes>(socket).await?;
    tokio::spawn(async move {
        let _ = connection.await; // the stream says it too
    });
    let request = Request::post("http://localhost/ProxyService/Proxy");
    let request = request.header("content-type", "application/grpc").header("te", "trailers").body(())?;
    let (answer, mut send) = sender.send_request(request, false)?;
    let first = Packet::dial(address, DIALS.fetch_add(1, Ordering::Relaxed)).framed()?;
    send.send_data(first.freeze(), false)?;
    let answer = answer.await?;
    ensure!(answer.status() == 200, "Proxy was answered {}", answer.status());
    let mut grpc = Grpc::new(H2Stream::new(send, answer.into_body()));
    grpc.dialled().await?;
    Ok(grpc)
}

// === impl Grpc ===

impl<T: AsyncRead + AsyncWrite + Unpin> Grpc<T> {
    fn new(io: T) -> Self {
        Self {
            io,
            connection: 0,
            received: BytesMut::new(),
            unread: Bytes::new(),
            unsent: BytesMut::new(),
            ended: false,
        }
    }

    async fn dialled(&mut self) -> Result<()> {
        loop {
            if let Some(packet) = Packet::unframe(&mut self.received)? {
                match packet.payload {
                    Some(Payload::DialResponse(answer)) if answer.error.is_empty() => {
                        self.connection = answer.connection;
                        return Ok(());
                    }
                    other => bail!("the dial was answered {other:?}"),
                }
            }
            ensure!(self.io.read_buf(&mut self.received).await? > 0, "the call ended before the dial was answered");
        }
    }

    /// Closes as the client library does: asks, and waits for the answer.
    pub async fn close(mut self) -> io::Result<()> {
        let packet = Packet::close(self.connection).framed().map_err(io::Error::other)?;
        self.io.write_all(&packet).await?;
        let mut rest = [0; 512];
        while self.read(&mut rest).await? > 0 {}
        self.io.shutdown().await
    }

    fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsent.is_empty() {
            let written = ready!(Pin::new(&mut self.io).poll_write(cx, &self.unsent))?;
            self.unsent.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    /// Takes the next packet into account, if it is there as a whole.
    fn take(&mut self) -> io::Result<bool> {
        let Some(packet) = Packet::unframe(&mut self.received).map_err(io::Error::other)? else { return Ok(false) };
        match packet.payload {
            Some(Payload::Data(data)) => self.unread = data.bytes,
            Some(Payload::CloseResponse(_)) => self.ended = true,
            _ => {}
        }
        Ok(true)
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncRead for Grpc<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.unread.is_empty() && !this.ended {
            if this.take()? {
                continue;
            }
            this.received.reserve(PIECE);
            let mut read = std::pin::pin!(this.io.read_buf(&mut this.received));
            this.ended = ready!(read.as_mut().poll(cx))? == 0;
        }
        let data = this.unread.split_to(this.unread.len().min(buffer.remaining()));
        buffer.put_slice(&data);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Grpc<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_sent(cx))?;
        let data = &data[..data.len().min(PIECE)];
        self.unsent = Packet::data(self.connection, data).framed().map_err(io::Error::other)?;
        // The next write or flush sends the rest.
        if let Poll::Ready(Err(error)) = self.poll_sent(cx) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(data.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_sent(cx))?;
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx) // the protocol has no half-close
    }
}

#[cfg(test)]
mod tests;
