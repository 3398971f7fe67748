//! Two streams of two links joined: what the relay does. `Bytes` are moved, not copied.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use crate::budget::Account;
use crate::inbox::Inbox;
use crate::{Budget, Gauge, Stream};

/// One way of a splice.
#[derive(Default)]
struct Way {
    inbox: Inbox,
    /// `END_STREAM` was passed on, or the sink reads no more.
    done: bool,
}

/// Moves bytes both ways until both directions have ended. Each direction ends by itself (half-close); a reset of one stream resets
/// the other. `a` is the side that asked for the stream, `b` the side that leads to the destination.
///
/// # Errors
/// [`io::ErrorKind::ConnectionReset`] when either was reset or its link was lost, [`io::ErrorKind::QuotaExceeded`] when the budget or
/// [`Gauge::end`] ended it. Both streams have been reset then, as they are when the future is dropped.
pub async fn splice(mut a: Stream, mut b: Stream, gauge: Arc<Gauge>, budget: &Budget) -> io::Result<()> {
    let account = Account::open(gauge, Some(budget));
    let (mut forth, mut back) = (Way::default(), Way::default());
    poll_fn(|cx| {
        account.check(cx)?;
        forth.poll(cx, &mut a, &mut b, &account, &account.gauge().forth)?;
        back.poll(cx, &mut b, &mut a, &account, &account.gauge().back)?;
        forth.watch(cx, &mut a, &mut back.done)?;
        back.watch(cx, &mut b, &mut forth.done)?;
        if forth.done && back.done { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
}

// === impl Way ===

impl Way {
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
        self.inbox.fill(cx, source, account)?;
        while !self.inbox.queue.is_empty() {
            match self.poll_pass(cx, source, sink, account, moved) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                    self.done = true;
                    self.inbox.discard(source, account);
                    return Ok(());
                }
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Ok(()),
            }
        }
        sink.settle();
        if self.inbox.ended {
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
            sink.send(piece)?;
            if left == 0 {
                break;
            }
        }
        let passed = room - left;
        source.release(passed);
        account.give(passed);
        moved.fetch_add(passed as u64, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }

    /// A reset is seen where data is taken. A stream that will send no more is watched here, for as long as the other way, to it,
    /// is open.
    fn watch(&self, cx: &mut Context<'_>, source: &mut Stream, other_done: &mut bool) -> io::Result<()> {
        if !self.inbox.ended || *other_done {
            return Ok(());
        }
        match source.poll_reset(cx) {
            Poll::Ready(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                *other_done = true;
                cx.waker().wake_by_ref();
                Ok(())
            }
            Poll::Ready(error) => Err(error),
            Poll::Pending => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
