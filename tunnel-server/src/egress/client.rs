//! The socket of a client of the HTTP/1.1 front, once its tunnel is open. It sends the 200 alone
//! and holds the member's bytes back until the client has read the 200.
//!
//! Two separate writes are not enough: nearly half of the clients that were slow to read got the
//! 200 and the member's first bytes in one read, and kube-apiserver closes such a connection. A
//! Unix socket reports when its peer has read everything. A TCP socket does not. There the member's
//! bytes wait for a fixed time, or until the client sends bytes, which no client does before it has
//! seen the 200.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use net::large_reads::LargeReads;
use net::prefixed::take_early;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Sleep, sleep};
use tokio_rustls::server::TlsStream;
use tunnel::bridge::Socket;

/// Wait from a TCP client's 200 to the member's first bytes. It is long enough for the scheduler of
/// a busy machine to run the client (a quarter of it was not). Only clients of members that speak
/// first ever wait for it. Kubernetes tunnels TLS, where clients speak first.
const MOMENT: Duration = Duration::from_millis(100);
/// Wait on a Unix socket once the peer has read the 200. The peer's `read` may not have returned
/// yet, and until then it also takes what arrives next. On a machine with twice as many threads to
/// run as processors, one in 10,000 was interrupted there for more than a millisecond.
const SHORT_MOMENT: Duration = Duration::from_millis(10);

/// A socket on which clients of the front connect.
pub trait Front: Socket + Sync {
    /// Sends all of `answer`. Returns how long the member's bytes must wait, from now or from when
    /// the peer has read `answer`.
    fn announce(&mut self, answer: &'static [u8]) -> impl Future<Output = io::Result<Pause>> + Send;

    /// Completes when the peer has read what [`Front::announce`] sent; at once where that is not
    /// visible.
    fn poll_taken(&self, cx: &mut Context<'_>) -> Poll<()>;
}

/// The wait that delays the member's bytes.
#[derive(Debug, Clone, Copy)]
pub enum Pause {
    FromNow(Duration),
    OnceTaken(Duration),
}

/// Reads return the early bytes of the client first; writes wait for the gate.
#[derive(Debug)]
pub struct Client<S> {
    io: S,
    early: Bytes,
    gate: Gate,
    /// The task of a write that waits for the gate; a read of the client's bytes wakes it.
    waiting: Option<Waker>,
}

/// Holds the member's bytes back.
#[derive(Debug)]
enum Gate {
    /// Until the peer has read the answer, and for this time after that.
    Shut(Duration),
    /// Until this time has passed.
    Settling(Pin<Box<Sleep>>),
    Open,
}

// === impl Client ===

impl<S> Client<S> {
    /// Wraps `io`, from which `early` has been read already.
    pub fn early(io: S, early: Bytes) -> Self {
        Self { io, early, gate: Gate::Open, waiting: None }
    }
}

impl<S: Front> Client<S> {
    /// Sends `answer` to the client of `io`, whose tunnel is open.
    pub async fn connected(mut io: S, early: Bytes, answer: &'static [u8]) -> io::Result<Self> {
        let gate = match io.announce(answer).await? {
            Pause::FromNow(moment) => Gate::Settling(Box::pin(sleep(moment))),
            Pause::OnceTaken(moment) => Gate::Shut(moment),
        };
        Ok(Self { io, early, gate, waiting: None })
    }
}

impl<S: Front> Client<S> {
    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut self.gate {
                Gate::Open => return Poll::Ready(()),
                Gate::Settling(moment) => {
                    if moment.as_mut().poll(cx).is_pending() {
                        break;
                    }
                    self.gate = Gate::Open;
                }
                Gate::Shut(moment) => {
                    if self.io.poll_taken(cx).is_pending() {
                        break;
                    }
                    self.gate = Gate::Settling(Box::pin(sleep(*moment)));
                }
            }
        }
        self.waiting = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl<S> Client<S> {
    fn spoken(&mut self) {
        if !matches!(self.gate, Gate::Open) {
            self.gate = Gate::Open;
            self.waiting.take().into_iter().for_each(Waker::wake);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Client<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if take_early(&mut this.early, buf) {
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.io).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            this.spoken();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: Front> AsyncWrite for Client<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_open(cx));
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_open(cx));
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    // A shutdown carries no byte, so it need not wait.
    net::forward!(io: is_write_vectored, poll_flush, poll_shutdown);
}

impl<S: Front> Socket for Client<S> {
    tunnel::forward_socket!(io);
}

fn forget(stream: &UnixStream) {
    let nothing: io::Result<()> = stream.try_io(Interest::WRITABLE, || Err(io::ErrorKind::WouldBlock.into()));
    debug_assert!(nothing.is_err());
}

// === impl Front ===

impl Front for TlsStream<LargeReads<TcpStream>> {
    async fn announce(&mut self, answer: &'static [u8]) -> io::Result<Pause> {
        self.write_all(answer).await?;
        self.flush().await?;
        Ok(Pause::FromNow(MOMENT))
    }

    fn poll_taken(&self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
}

impl Front for UnixStream {
    /// The kernel reports a socket as writable whenever the peer has read a message
    /// (`unix_write_space` in `net/unix/af_unix.c`), but tokio remembers that the socket was
    /// writable before. So this function makes tokio forget that, and then sends past tokio. The
    /// next event means that the peer has read the answer, sent bytes, or closed. No older event is
    /// still pending: it came before the member's answer, and tokio has taken it, because otherwise
    /// tokio could not have read the request.
    async fn announce(&mut self, answer: &'static [u8]) -> io::Result<Pause> {
        forget(self);
        // The first write on this socket, so the buffer has room for one line.
        let sent = SockRef::from(&*self).send(answer)?;
        if sent == answer.len() { Ok(Pause::OnceTaken(SHORT_MOMENT)) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    fn poll_taken(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_write_ready(cx).map(drop)
    }
}

#[cfg(test)]
mod tests;
