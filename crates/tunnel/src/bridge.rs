//! A stream of a link joined to a socket: what the agent does with a destination, and an HTTP/1.1 front with its client.
//!
//! FIN is `END_STREAM` and RST is `RST_STREAM`, both ways. An idle bridge holds no buffer.

mod inward;
mod outward;
mod socket;

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use self::inward::Inward;
use self::outward::Outward;
pub use self::socket::Socket;
use crate::budget::Account;
use crate::{Budget, Gauge, Stream};

/// Moves bytes both ways until both directions have ended. Reads the socket only when the stream has room. `forth` of the gauge is
/// towards the socket when `stream_asks`, else from it.
///
/// # Errors
/// Of the socket, or [`io::ErrorKind::ConnectionReset`] when the stream was reset or its link lost, or
/// [`io::ErrorKind::QuotaExceeded`] when [`Gauge::end`] ended it. The stream has been reset then and the socket aborted.
pub fn bridge<S: Socket>(
    stream: Stream,
    socket: S,
    gauge: Arc<Gauge>,
    stream_asks: bool,
) -> impl Future<Output = io::Result<()>> + Send + use<S> {
    Bridge::new(stream, socket, Account::open(gauge, None), stream_asks).run()
}

/// As [`bridge`], with what it holds counted in `budget`.
pub fn bridge_within<S: Socket>(
    stream: Stream,
    socket: S,
    gauge: Arc<Gauge>,
    stream_asks: bool,
    budget: &Budget,
) -> impl Future<Output = io::Result<()>> + Send + use<S> {
    Bridge::new(stream, socket, Account::open(gauge, Some(budget)), stream_asks).run()
}

/// The socket, aborted when dropped before both directions have ended: also when the future is.
struct Guarded<S: Socket>(Option<S>);

struct Bridge<S: Socket> {
    stream: Stream,
    socket: Guarded<S>,
    account: Account,
    stream_asks: bool,
    inward: Inward,
    outward: Outward,
}

// === impl Bridge ===

impl<S: Socket> Bridge<S> {
    /// Not part of the future, which may be dropped before it has run: the socket is guarded from here on.
    fn new(stream: Stream, socket: S, account: Account, stream_asks: bool) -> Self {
        let (inward, outward) = (Inward::default(), Outward::default());
        Self { stream, socket: Guarded(Some(socket)), account, stream_asks, inward, outward }
    }

    async fn run(mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll(cx)).await?;
        self.socket.0 = None;
        Ok(())
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.account.check(cx)?;
        let socket = self.socket.0.as_mut().expect("taken at the end");
        let gauge = self.account.gauge();
        let (to_socket, from_socket) =
            if self.stream_asks { (&gauge.forth, &gauge.back) } else { (&gauge.back, &gauge.forth) };
        self.inward.poll(cx, &mut self.stream, socket, &self.account, to_socket)?;
        self.outward.poll(cx, socket, &mut self.stream, &self.account, from_socket)?;
        self.watch(cx)?;
        if self.inward.done && self.outward.done() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// A reset is seen where data is taken. A stream that will send no more is watched here.
    fn watch(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if !self.inward.ended() || self.outward.done() {
            return Ok(());
        }
        match self.stream.poll_reset(cx) {
            Poll::Ready(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.outward.discard(&self.account);
                cx.waker().wake_by_ref();
                Ok(())
            }
            Poll::Ready(error) => Err(error),
            Poll::Pending => Ok(()),
        }
    }
}

// === impl Guarded ===

impl<S: Socket> Drop for Guarded<S> {
    fn drop(&mut self) {
        if let Some(socket) = self.0.take() {
            socket.abort();
        }
    }
}

#[cfg(test)]
mod tests;
