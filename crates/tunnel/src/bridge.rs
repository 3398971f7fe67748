//! Joins a stream of a link to a socket: an agent joins a destination, an HTTP/1.1 front its
//! client.
//!
//! FIN is `END_STREAM` and RST is `RST_STREAM`, both ways; bytes before a reset are passed on
//! before it. An idle bridge holds no buffer.

mod inward;
mod outward;
mod socket;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use self::inward::Inward;
use self::outward::Outward;
pub use self::socket::Socket;
use crate::deferred_reset::{DeferredReset, Joined};
use crate::gauge::{self, Account};
use crate::{Budget, Gauge, Stream};

/// Moves bytes both ways until both directions have ended and HTTP/2 has sent everything. Reads the
/// socket only when the stream has taken what was read before. The gauge's `forth` is towards the
/// socket if `stream_asks`, else from it.
///
/// # Errors
/// The socket's error, [`io::ErrorKind::ConnectionReset`] if the stream was reset or its link lost,
/// or [`io::ErrorKind::QuotaExceeded`] if [`Gauge::end`] ended it. By then the stream has been
/// reset and the socket aborted.
pub fn bridge<S: Socket>(
    stream: Stream,
    socket: S,
    gauge: Arc<Gauge>,
    stream_asks: bool,
) -> impl Future<Output = io::Result<()>> + Send + use<S> {
    Bridge::new(stream, socket, gauge::account(gauge, None), stream_asks)
}

/// Like [`bridge`], and counts what it holds in `budget`.
pub fn bridge_within<S: Socket>(
    stream: Stream,
    socket: S,
    gauge: Arc<Gauge>,
    stream_asks: bool,
    budget: &Budget,
) -> impl Future<Output = io::Result<()>> + Send + use<S> {
    Bridge::new(stream, socket, gauge::account(gauge, Some(budget)), stream_asks)
}

/// Which side broke.
enum BrokenSide {
    Stream(io::Error),
    Socket(io::Error),
}

/// The socket. Aborts it when dropped before both directions have ended, also together with the
/// future.
struct Guarded<S: Socket>(Option<S>);

struct Bridge<S: Socket> {
    stream: Stream,
    socket: Guarded<S>,
    account: Account,
    stream_asks: bool,
    inward: Inward,
    outward: Outward,
    /// Set once a side has broken.
    deferred_reset: Option<Box<DeferredReset>>,
}

// === impl Bridge ===

impl<S: Socket> Bridge<S> {
    /// Not part of the future, which may be dropped before it first runs: the socket must be
    /// guarded from here on.
    fn new(stream: Stream, socket: S, account: Account, stream_asks: bool) -> Self {
        let (inward, outward) = (Inward::default(), Outward::default());
        Self { stream, socket: Guarded(Some(socket)), account, stream_asks, inward, outward, deferred_reset: None }
    }

    fn move_both(&mut self, cx: &mut Context<'_>) -> Result<(), BrokenSide> {
        let socket = self.socket.0.as_mut().expect("taken at the end");
        let gauge = self.account.holder();
        let (to_socket, from_socket) =
            if self.stream_asks { (&gauge.forth, &gauge.back) } else { (&gauge.back, &gauge.forth) };
        self.inward.poll(cx, &mut self.stream, socket, &self.account, to_socket)?;
        self.outward.poll(cx, socket, &mut self.stream, &self.account, from_socket)?;
        self.watch(cx).map_err(BrokenSide::Stream)
    }

    /// Detects a reset of a stream whose peer will send no more. Before that, taking its data does.
    fn watch(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if !self.inward.ended() || self.outward.done() {
            return Ok(());
        }
        if self.stream.takes_no_more(cx)? {
            self.outward.discard(&self.account);
        }
        Ok(())
    }
}

impl<S: Socket> Joined for Bridge<S> {
    fn account(&self) -> &Account {
        &self.account
    }

    fn poll_both(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        self.move_both(cx).map_err(|broke| match broke {
            BrokenSide::Stream(error) => {
                self.inward.cut();
                self.outward.discard(&self.account);
                error
            }
            BrokenSide::Socket(error) => {
                self.inward.discard(&mut self.stream, &self.account);
                self.outward.cut();
                error
            }
        })
    }

    fn is_over(&self) -> bool {
        self.inward.is_over() && self.outward.done()
    }

    fn held(&self) -> u64 {
        self.inward.held() + self.outward.held()
    }

    fn deferred_reset(&mut self) -> &mut Option<Box<DeferredReset>> {
        &mut self.deferred_reset
    }
}

/// Written by hand: an async block would reserve the room for its state twice.
impl<S: Socket> Future for Bridge<S> {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let end = self.poll_end(cx);
        if let Poll::Ready(Ok(())) = end {
            self.socket.0 = None;
        }
        end
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
