//! Joins two streams of two links, as the relay does. `Bytes` are moved, not copied. Bytes before a
//! reset are passed on before it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use crate::deferred_reset::{DeferredReset, Joined};
use crate::gauge::{self, Account};
use crate::inbox::Inbox;
use crate::{Budget, Gauge, Stream};

/// One direction of a splice.
#[derive(Default)]
struct Direction {
    inbox: Inbox,
    /// The source has broken: what it brought is still passed on, but no end follows.
    cut: bool,
    /// `END_STREAM` was passed on, or the sink reads no more.
    done: bool,
}

/// Which stream broke.
enum BrokenSide {
    A(io::Error),
    B(io::Error),
}

struct Splice {
    a: Stream,
    b: Stream,
    account: Account,
    forth: Direction,
    back: Direction,
    /// Set once a stream has broken.
    deferred_reset: Option<Box<DeferredReset>>,
}

/// Moves bytes both ways until both directions have ended and HTTP/2 has sent everything. Each
/// direction ends by itself (half-close); a reset of one stream resets the other. `a` is the side
/// that requested the stream, `b` the side that leads to the destination.
///
/// # Errors
/// [`io::ErrorKind::ConnectionReset`] if either was reset or its link was lost,
/// [`io::ErrorKind::QuotaExceeded`] if the budget or [`Gauge::end`] ended it. Both streams have
/// been reset then, as they are when the future is dropped.
pub fn splice(
    a: Stream,
    b: Stream,
    gauge: Arc<Gauge>,
    budget: &Budget,
) -> impl Future<Output = io::Result<()>> + Send + use<> {
    let account = gauge::account(gauge, Some(budget));
    Splice { a, b, account, forth: Direction::default(), back: Direction::default(), deferred_reset: None }
}

// === impl Splice ===

/// Written by hand: an async block would reserve the room for its state twice.
impl Future for Splice {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_end(cx)
    }
}

impl Joined for Splice {
    fn account(&self) -> &Account {
        &self.account
    }

    fn poll_both(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        self.move_both(cx).map_err(|broke| match broke {
            BrokenSide::A(error) => {
                self.forth.cut = true;
                self.back.give_up(&mut self.b, &self.account);
                error
            }
            BrokenSide::B(error) => {
                self.back.cut = true;
                self.forth.give_up(&mut self.a, &self.account);
                error
            }
        })
    }

    fn is_over(&self) -> bool {
        self.forth.is_over() && self.back.is_over()
    }

    fn held(&self) -> u64 {
        self.forth.held() + self.back.held()
    }

    fn deferred_reset(&mut self) -> &mut Option<Box<DeferredReset>> {
        &mut self.deferred_reset
    }
}

impl Splice {
    fn move_both(&mut self, cx: &mut Context<'_>) -> Result<(), BrokenSide> {
        let Self { a, b, account, forth, back, .. } = self;
        let gauge = account.holder();
        forth.fill(cx, a, account).map_err(BrokenSide::A)?;
        forth.poll(cx, a, b, account, &gauge.forth).map_err(BrokenSide::B)?;
        back.fill(cx, b, account).map_err(BrokenSide::B)?;
        back.poll(cx, b, a, account, &gauge.back).map_err(BrokenSide::A)?;
        forth.watch(cx, a, &mut back.done).map_err(BrokenSide::A)?;
        back.watch(cx, b, &mut forth.done).map_err(BrokenSide::B)
    }
}

// === impl Direction ===

impl Direction {
    /// Whether nothing more will be passed on.
    fn is_over(&self) -> bool {
        self.done || self.cut && (self.inbox.broken || self.inbox.ended) && self.inbox.queue.is_empty()
    }

    /// Bytes that the sink has not taken.
    fn held(&self) -> u64 {
        self.inbox.queue.held() as u64
    }

    /// Called when the sink takes no more.
    fn give_up(&mut self, source: &mut Stream, account: &Account) {
        self.inbox.discard(source, account);
        self.done = true;
    }

    /// Takes the data that has arrived; fails when the source breaks.
    fn fill(&mut self, cx: &mut Context<'_>, source: &mut Stream, account: &Account) -> io::Result<()> {
        if self.done {
            return Ok(());
        }
        let filled = self.inbox.fill(cx, source, account);
        if self.cut { Ok(()) } else { filled }
    }

    /// Passes the data on; fails when the sink breaks.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Stream,
        sink: &mut Stream,
        account: &Account,
        moved: &AtomicU64,
    ) -> io::Result<()> {
        if self.done {
            self.inbox.discard(source, account);
            return Ok(());
        }
        while !self.inbox.queue.is_empty() {
            match self.poll_pass(cx, source, sink, account, moved) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                    self.give_up(source, account);
                    return Ok(());
                }
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Ok(()),
            }
        }
        sink.settle();
        if self.inbox.ended && !self.cut {
            self.done = true;
            match sink.finish() {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Passes on as much as there is room for.
    fn poll_pass(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Stream,
        sink: &mut Stream,
        account: &Account,
        moved: &AtomicU64,
    ) -> Poll<io::Result<()>> {
        let room = ready!(sink.poll_room(cx, self.inbox.queue.held()))?;
        let mut left = room;
        while let Some(piece) = self.inbox.queue.pop(left) {
            left -= piece.len();
            sink.send(account.lend(piece))?;
            if left == 0 {
                break;
            }
        }
        let passed = room - left;
        source.release(passed);
        moved.fetch_add(passed as u64, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }

    /// Detects a reset of a stream that will send no more, for as long as the direction towards it
    /// is open. Before that, taking its data does.
    fn watch(&self, cx: &mut Context<'_>, source: &mut Stream, other_done: &mut bool) -> io::Result<()> {
        if !self.inbox.ended || *other_done {
            return Ok(());
        }
        *other_done = source.takes_no_more(cx)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
