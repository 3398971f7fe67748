//! Data from a stream's peer, taken off HTTP/2 as it arrives and passed on as there is room.

use std::io;
use std::task::{Context, Poll};

use net::queue::Queue;

use crate::Stream;
use crate::gauge::Account;

/// One direction of a join whose source is a [`Stream`]. Its contents are not yet given back to the
/// peer's window, so it holds a window at most.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    pub queue: Queue,
    /// The peer has ended its direction; the queue may still hold data.
    pub ended: bool,
    /// The stream was reset; earlier data is in the queue.
    pub broken: bool,
}

// === impl Inbox ===

impl Inbox {
    /// Most pieces taken in one poll, so that a peer with many short frames does not keep the
    /// thread.
    const PIECES: usize = 256;

    /// Takes the data that has arrived. Fails when the stream was reset; after that there is
    /// nothing more to take.
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

    /// Drops its contents, which no longer have a reader.
    pub fn discard(&mut self, source: &mut Stream, account: &Account) {
        let held = self.queue.held();
        self.queue = Queue::default();
        account.give(held);
        source.release(held);
    }
}
