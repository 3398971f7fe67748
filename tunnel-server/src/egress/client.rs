//! A client of the HTTP/1.1 front once its tunnel stands: the 200 goes out alone, and nothing of
//! the member before it was taken.
//!
//! Two writes in a row are not enough: nearly half of the clients that were slow to look got the
//! 200 and a member's first words in one read, and kube-apiserver gives such a connection up. A
//! Unix socket tells when its peer has read everything; a TCP socket does not, so there a moment
//! has to pass, or the client has to speak, which no client does that has not seen the 200.

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

/// From a TCP client's 200 to the member's first words. Long enough for a client on a busy machine
/// to be scheduled (a quarter of it was not); only clients that let the member speak first ever
/// wait for it, and what Kubernetes tunnels is TLS, where clients speak first.
const MOMENT: Duration = Duration::from_millis(100);
/// The same for a Unix socket after its peer has read the 200: the `read` that did it may not have
/// returned yet, and takes what comes until then. On a machine with twice as many threads to run as
/// processors one in 10,000 was interrupted there for more than a millisecond.
const SHORT_MOMENT: Duration = Duration::from_millis(10);

/// A socket that clients of the front come by.
pub trait Front: Socket + Sync {
    /// Sends `answer` whole. Returns what has to pass then, from now on or from when the peer has
    /// read it.
    fn announce(&mut self, answer: &'static [u8]) -> impl Future<Output = io::Result<Pause>> + Send;

    /// Waits until the peer has read what [`Front::announce`] sent, where that can be seen.
    fn poll_taken(&self, cx: &mut Context<'_>) -> Poll<()>;
}

/// What the member's bytes wait for.
#[derive(Debug, Clone, Copy)]
pub enum Pause {
    FromNow(Duration),
    OnceTaken(Duration),
}

/// See the module's text. What the client sent early is read first.
#[derive(Debug)]
pub struct Client<S> {
    io: S,
    early: Bytes,
    gate: Gate,
    /// A write that waits for the gate, for when the client speaks.
    waiting: Option<Waker>,
}

/// Keeps the member's bytes back.
#[derive(Debug)]
enum Gate {
    /// Until the peer has read the answer, and for a moment more.
    Shut(Duration),
    /// For a moment.
    Settling(Pin<Box<Sleep>>),
    Open,
}

// === impl Client ===

impl<S> Client<S> {
    /// `io` of which `early` was read already.
    pub fn early(io: S, early: Bytes) -> Self {
        Self { io, early, gate: Gate::Open, waiting: None }
    }
}

impl<S: Front> Client<S> {
    /// Answers the client of `io`, whose tunnel stands.
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

    // An end is no byte: it need not wait.
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
    /// The kernel tells of a writable socket whenever the peer has read a message
    /// (`unix_write_space` in `net/unix/af_unix.c`), but tokio remembers that it was writable all
    /// the time. So it is made to forget, and sent to behind its back: the next it hears is that
    /// the answer was read, or that the client has spoken or gone. There is no older news that it
    /// has not heard: it came before the member's answer, and without it the request could not have
    /// been read.
    async fn announce(&mut self, answer: &'static [u8]) -> io::Result<Pause> {
        forget(self);
        // Nothing was sent before: there is room for a line.
        let sent = SockRef::from(&*self).send(answer)?;
        if sent == answer.len() { Ok(Pause::OnceTaken(SHORT_MOMENT)) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    fn poll_taken(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_write_ready(cx).map(drop)
    }
}

#[cfg(test)]
mod tests;
