//! What a stream's peer has sent, taken off HTTP/2 as it comes and passed on as there is room.

use std::io;
use std::task::{Context, Poll};

use net::queue::Queue;

use crate::Stream;
use crate::gauge::Account;

/// One direction of a join whose source is a [`Stream`]. What is in it was not yet given back to
/// the peer's window, so that it holds a window at most.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    pub queue: Queue,
    /// The peer has ended its direction; the queue may hold something still.
    pub ended: bool,
    /// The stream was reset; what came before is in the queue.
    pub broken: bool,
}

// === impl Inbox ===

impl Inbox {
    /// Pieces taken in one go, so that a peer with many short frames does not keep the thread.
    const PIECES: usize = 256;

    /// Takes what there is. Fails when the stream was reset; then there is nothing more to take.
    pub fn fill(&mut self, cx: &mut Context<'_>, source: &mut Stream, account: &Account) -> io::Result<()> {
        for _ in 0..Self::PIECES {
            if self.ended || self.broken {
                return Ok(());
            }
            match source.poll_data(cx) {
                Poll::Ready(Some(Err(error))) => {
                    self.broken = true;
                    return Err(error);
                }
                Poll::Ready(Some(Ok(piece))) => {
                    account.take(piece.len());
                    self.queue.push(piece);
                }
                Poll::Ready(None) => self.ended = true,
                Poll::Pending => return Ok(()),
            }
        }
        cx.waker().wake_by_ref();
        Ok(())
    }

    /// Drops its contents, which have no reader any more.
    pub fn discard(&mut self, source: &mut Stream, account: &Account) {
        let held = self.queue.held();
        self.queue = Queue::default();
        account.give(held);
        source.release(held);
    }
}
