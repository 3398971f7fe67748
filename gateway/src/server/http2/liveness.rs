//! Whether a client is still there: after silence a PING asks (RFC 9113 §6.7).

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use h2::{Ping, PingPong};
use tokio::time::{Instant, Sleep, sleep};

use crate::server::heard::Ear;
use crate::server::limits::Limits;

/// Polled beside its connection.
pub struct Liveness {
    pings: PingPong,
    ear: Ear,
    /// Bytes heard when it was last looked.
    heard: u64,
    timer: Pin<Box<Sleep>>,
    asked: bool,
}

// === impl Liveness ===

impl Liveness {
    pub fn new(pings: PingPong, ear: Ear) -> Self {
        Self { pings, ear, heard: 0, timer: Box::pin(sleep(Limits::PING_EVERY)), asked: false }
    }

    /// Completes when the client owes an answer for too long.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            // An error is the connection's end, which is seen there.
            if self.asked && self.pings.poll_pong(cx).is_ready() {
                self.asked = false;
                self.timer.as_mut().reset(Instant::now() + Limits::PING_EVERY);
            }
            ready!(self.timer.as_mut().poll(cx));
            if self.asked {
                return Poll::Ready(());
            }
            let heard = std::mem::replace(&mut self.heard, self.ear.bytes());
            self.asked = heard == self.heard && self.pings.send_ping(Ping::opaque()).is_ok();
            let wait = if self.asked { Limits::PONG_WITHIN } else { Limits::PING_EVERY };
            self.timer.as_mut().reset(Instant::now() + wait);
        }
    }
}
