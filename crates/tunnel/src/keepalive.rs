//! Checks whether a link's peer is alive, measures the round trip, and sizes the windows.
//!
//! Any received byte counts as a sign of life. PINGs are sent after silence, now and then to
//! measure the round trip, and when the window needs a sample or an open went unanswered. The side
//! that only receives also sends one after it has been silent itself: the other side's own PINGs
//! may wait behind its bulk data, and meanwhile it would receive nothing. (RFC 9113 §6.7.)

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use h2::{Ping, PingPong};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::Settings;
use crate::activity::Activity;
use crate::signals::Signal;
use crate::turn::Turns;

/// Polled by a driver next to its connection.
pub(crate) struct Keepalive {
    activity: Arc<Activity>,
    pings: PingPong,
    timer: Pin<Box<Sleep>>,
    asked: Option<PingSent>,
    last_ping: Option<Instant>,
    silence: Duration,
    timeout: Duration,
    window: Window,
}

/// A PING without an answer yet.
struct PingSent {
    at: Instant,
    bytes: u64,
}

/// What a driver must do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum KeepaliveAction {
    /// Announce this stream window.
    Window(u32),
    /// Nothing was received for this long: give the link up.
    Silent(Duration),
}

/// The stream window that suits the path: it grows while the bytes that arrive within a round trip
/// come near it.
#[derive(Debug)]
struct Window {
    now: u32,
    most: u32,
    shortest: Duration,
    sampled: u64,
}

// === impl Keepalive ===

impl Keepalive {
    pub fn new(activity: Arc<Activity>, pings: PingPong, settings: &Settings) -> Self {
        activity.reset();
        Self {
            pings,
            timer: Box::pin(sleep_until(Instant::now())),
            asked: None,
            last_ping: None,
            silence: settings.keepalive,
            timeout: settings.keepalive_timeout,
            window: Window {
                now: settings.stream_window,
                most: settings.stream_window_max,
                shortest: Duration::MAX,
                sampled: 0,
            },
            activity,
        }
    }

    /// Ready when the connection is to be polled again, or when it has been silent for too long,
    /// with that time. Stream windows are announced by `announce`.
    pub fn tend(
        &mut self,
        cx: &mut Context<'_>,
        turns: &Turns,
        announce: impl FnOnce(u32) -> Result<(), h2::Error>,
    ) -> Poll<Result<(), Duration>> {
        match self.poll(cx) {
            Poll::Ready(KeepaliveAction::Silent(silence)) => Poll::Ready(Err(silence)),
            Poll::Ready(KeepaliveAction::Window(window)) => {
                // Refused while an earlier change is not acknowledged; the next sample asks again.
                let _ = announce(window);
                Poll::Ready(Ok(()))
            }
            Poll::Pending => {
                turns.end_one();
                Poll::Pending
            }
        }
    }

    /// Ready when the driver has to do something. To be polled whenever the connection is: what was
    /// heard is seen there first.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<KeepaliveAction> {
        if self.window.wants_sample(self.activity.bytes()) || self.activity.signals.take(Signal::Probe) {
            self.ask();
        }
        if let Some(window) = self.poll_answer(cx) {
            return Poll::Ready(KeepaliveAction::Window(window));
        }
        loop {
            ready!(self.timer.as_mut().poll(cx));
            let silence = self.activity.silence();
            if silence >= self.silence + self.timeout {
                return Poll::Ready(KeepaliveAction::Silent(silence));
            }
            let now = Instant::now();
            if self.next_ping() <= now {
                self.ask();
                if let Some(window) = self.poll_answer(cx) {
                    return Poll::Ready(KeepaliveAction::Window(window));
                }
            }
            let dead = self.activity.last_read() + self.silence + self.timeout;
            let next = if self.asked.is_some() { dead } else { dead.min(self.next_ping()) };
            // Activity is recorded in milliseconds: without a step forward the loop could find
            // nothing to do and not end.
            self.timer.as_mut().reset(next.max(now + Duration::from_millis(1)));
        }
    }

    fn next_ping(&self) -> Instant {
        let Some(last) = self.last_ping else { return self.timer.deadline() };
        let quiet = self.activity.last_read().min(self.activity.last_write()) + self.silence;
        quiet.min(last + Settings::RTT_EVERY)
    }

    fn ask(&mut self) {
        if self.asked.is_none() && self.pings.send_ping(Ping::opaque()).is_ok() {
            let now = Instant::now();
            self.asked = Some(PingSent { at: now, bytes: self.activity.bytes() });
            self.last_ping = Some(now);
        }
    }

    /// Takes the answer to a PING. Returns the new window if it should change.
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Option<u32> {
        let asked = self.asked.as_ref()?;
        // An error is the connection's end, which the driver sees by itself.
        if !matches!(self.pings.poll_pong(cx), Poll::Ready(Ok(_))) {
            return None;
        }
        let took = asked.at.elapsed();
        let received = self.activity.bytes() - asked.bytes;
        self.asked = None;
        self.activity.set_rtt(took);
        // The timer was set to the time at which the link would be dead.
        self.timer.as_mut().reset(Instant::now());
        self.window.sample(took, received, self.activity.bytes())
    }
}

// === impl Window ===

impl Window {
    /// On a path with a shorter round trip, a window of a megabyte is no limit.
    const SHORT: Duration = Duration::from_millis(2);

    /// Whether enough has arrived since the last sample for another to be meaningful.
    fn wants_sample(&self, bytes: u64) -> bool {
        self.now < self.most
            && self.shortest != Duration::MAX
            && self.shortest >= Self::SHORT
            && bytes - self.sampled >= u64::from(self.now / 2)
    }

    /// Takes a sample: `received` bytes within `took`. The path's round trip is the shortest `took`
    /// so far: with a full buffer somewhere the answer takes longer, and a larger window would only
    /// fill that buffer more.
    fn sample(&mut self, took: Duration, received: u64, bytes: u64) -> Option<u32> {
        self.sampled = bytes;
        self.shortest = self.shortest.min(took);
        if self.now >= self.most || self.shortest < Self::SHORT {
            return None;
        }
        let share = self.shortest.as_secs_f64() / took.as_secs_f64().max(f64::MIN_POSITIVE);
        #[allow(clippy::cast_precision_loss, reason = "an estimate")]
        let product = received as f64 * share;
        if product * 3.0 < f64::from(self.now) * 2.0 {
            return None;
        }
        self.now = self.now.saturating_mul(2).min(self.most);
        Some(self.now)
    }
}

#[cfg(test)]
mod tests;
