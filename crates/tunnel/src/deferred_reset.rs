//! What is on its way when one side breaks: it is passed on before the other side is told, for as
//! long as it moves.
//!
//! A server that refuses an upload answers and closes with the rest unread, which is a reset right
//! behind the answer. TCP delivers what came before a reset; so do we.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

/// One side's end, for the other.
pub(crate) struct DeferredReset {
    error: Option<io::Error>,
    next: Pin<Box<Sleep>>,
    left: u64,
    /// Looks in a row at which nothing had moved.
    idle: u32,
}

// === impl DeferredReset ===

impl DeferredReset {
    const LOOK_EVERY: Duration = Duration::from_secs(1);
    /// Whoever takes nothing for so long is told of the end without the rest.
    const MOST_IDLE: u32 = 3;

    pub fn new(error: io::Error) -> Self {
        Self { error: Some(error), next: Box::pin(sleep(Self::LOOK_EVERY)), left: u64::MAX, idle: 0 }
    }

    /// Ready with the error when nothing is `left` on its way, or none of it moves. Not to be
    /// polled again then.
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
