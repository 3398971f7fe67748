//! When one side breaks, passes on what is in flight before the other side ends, for as long as it
//! moves.
//!
//! A server that refuses an upload answers and closes with the rest unread: a reset right behind
//! the answer. TCP delivers what came before a reset, and so do we.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use crate::gauge::Account;

/// Two sides joined both ways.
pub(crate) trait Joined {
    fn account(&self) -> &Account;

    /// Moves what can be moved. When a side breaks, drops what was to be sent to it, continues with
    /// what it sent, and returns the error, once for each side.
    fn poll_both(&mut self, cx: &mut Context<'_>) -> io::Result<()>;

    /// Whether nothing more will be moved.
    fn is_over(&self) -> bool;

    /// Bytes not yet passed on.
    fn held(&self) -> u64;

    /// Set once a side has broken. Boxed: rare.
    fn deferred_reset(&mut self) -> &mut Option<Box<DeferredReset>>;

    /// Ready when both directions have ended and all was sent, or when a side broke and the other
    /// may end.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.account().check(cx)?;
        while let Err(error) = self.poll_both(cx) {
            let deferred_reset = self.deferred_reset();
            if deferred_reset.is_some() {
                return Poll::Ready(Err(error));
            }
            *deferred_reset = Some(Box::new(DeferredReset::new(error)));
        }
        let (over, held) = (self.is_over(), self.held());
        let lent = self.account().lent();
        match self.deferred_reset() {
            Some(deferred_reset) => deferred_reset.poll(cx, held + lent + u64::from(!over)).map(Err),
            None if over && lent == 0 => Poll::Ready(Ok(())),
            None => Poll::Pending,
        }
    }
}

/// One side's error, deferred for the other side.
pub(crate) struct DeferredReset {
    error: Option<io::Error>,
    next: Pin<Box<Sleep>>,
    left: u64,
    /// Consecutive checks at which nothing had moved.
    idle: u32,
}

// === impl DeferredReset ===

impl DeferredReset {
    const LOOK_EVERY: Duration = Duration::from_secs(1);
    /// A side that takes nothing for this many checks ends without the rest.
    const MOST_IDLE: u32 = 3;

    pub fn new(error: io::Error) -> Self {
        Self { error: Some(error), next: Box::pin(sleep(Self::LOOK_EVERY)), left: u64::MAX, idle: 0 }
    }

    /// Ready with the error when nothing is `left` in flight, or none of it moves. Must not be
    /// polled again after that.
    pub fn poll(&mut self, cx: &mut Context<'_>, left: u64) -> Poll<io::Error> {
        while left > 0 && self.next.as_mut().poll(cx).is_ready() {
            self.idle = if left == self.left { self.idle + 1 } else { 0 };
            self.left = left;
            if self.idle == Self::MOST_IDLE {
                break;
            }
            self.next = Box::pin(sleep(Self::LOOK_EVERY));
        }
        if left > 0 && self.idle < Self::MOST_IDLE {
            return Poll::Pending;
        }
        Poll::Ready(self.error.take().unwrap_or_else(|| io::ErrorKind::ConnectionReset.into()))
    }
}
