//! Reads from the member or client, as much as a turn and the budget allow, and passes on what is
//! whole.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use net::budget::Holder as _;
use tokio::io::{AsyncRead, ReadBuf};

use super::{Inbound, MOST_WAITS};
use crate::holding::Tally;

impl<T: AsyncRead + Unpin> Inbound<T> {
    /// Reads unless the turn is over, or other connections must give way first.
    fn poll_stream(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let waits = self.turn.is_over() || self.must_wait();
        let read = if waits { Poll::Pending } else { Pin::new(&mut self.stream).poll_read(cx, buf) };
        if read.is_pending() {
            self.turns += usize::from(self.collector.is_none());
            if waits || self.turn.is_much() {
                cx.waker().wake_by_ref();
            }
        }
        read
    }

    fn must_wait(&mut self) -> bool {
        let waits = self.waits < MOST_WAITS
            && self
                .tally
                .as_ref()
                .map(Tally::account)
                .is_some_and(|account| account.is_overdrawn() && account.holder().may_be_ended());
        self.waits = if waits { self.waits + 1 } else { 0 };
        waits
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Inbound<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if let Err(why) = this.check() {
                return this.end(why);
            }
            this.check_room()?;
            if !this.ready.is_empty() {
                let here = this.ready.len().min(buf.remaining());
                buf.put_slice(&this.ready[..here]);
                this.ready.advance(here);
                if this.ready.is_empty() {
                    // Such heads are rare, and connections last long, so the buffer is freed.
                    this.ready = BytesMut::new();
                    this.tally();
                }
                return Poll::Ready(Ok(()));
            }
            let turn = this.collector.as_ref().map_or(this.turns, |collector| collector.turn());
            if this.turn.begin(turn) || this.has_more_slots() {
                this.tally();
            }
            let before = buf.filled().len();
            ready!(this.poll_stream(cx, buf))?;
            let taken = this.turn.bytes();
            let bytes = &buf.filled()[before..];
            if bytes.is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.marks.received(bytes.len());
            let passed = if this.held.is_empty() { this.pass(bytes) } else { 0 };
            if passed == bytes.len() {
                this.tally_passed(taken);
                this.check_room()?;
                return Poll::Ready(Ok(()));
            }
            this.held.extend_from_slice(&bytes[passed..]);
            buf.set_filled(before + passed);
            this.decide();
            if this.held.is_empty() {
                this.held = BytesMut::new();
            }
            this.tally();
            if passed > 0 {
                this.check_room()?;
                return Poll::Ready(Ok(()));
            }
        }
    }
}
