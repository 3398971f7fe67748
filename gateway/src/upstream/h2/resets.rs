//! Counts the streams of a connection that were reset before their responses.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Streams of one connection that the gateway reset unanswered, and that the member may not have
/// reached yet. Used on one core's thread only.
#[derive(Debug, Default)]
pub struct Resets {
    /// At most [`Resets::MOST`]. Sometimes too high, but never too low, because all are forgotten
    /// together.
    waiting: AtomicUsize,
    /// The last stream that asked for a reset, admitted or not. Nothing is forgotten before the
    /// response to a later stream.
    newest: AtomicU32,
    /// The last answered stream, recorded only while resets wait.
    answered: AtomicU32,
    passed: Notify,
}

// === impl Resets ===

impl Resets {
    /// Most resets that may wait, so that the member notices at once when a few callers leave
    /// together. Servers with Rust's h2 end a connection with 20 unprocessed resets, and Go's
    /// servers end it when four times the stream limit are queued. [`Resets::admit`] also stays
    /// within the member's stream limit: together with as many streams in use, that is half of what
    /// Go's servers accept.
    pub const MOST: usize = 16;

    /// Whether `stream` may be reset and forgotten, on a connection with `streams` at a time.
    pub fn admit(&self, stream: u32, streams: usize) -> bool {
        self.newest.fetch_max(stream, Ordering::Relaxed);
        let waiting = self.waiting.load(Ordering::Relaxed);
        let admitted = waiting < Self::MOST.min(streams);
        if admitted {
            self.waiting.store(waiting + 1, Ordering::Relaxed);
        }
        admitted
    }

    /// Whether resets wait: only then must responses be reported.
    pub fn any(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// `stream` was answered, so the member has reached or skipped all earlier ones.
    pub fn answered(&self, stream: u32) {
        self.answered.fetch_max(stream, Ordering::Relaxed);
        if stream > self.newest.load(Ordering::Relaxed) {
            self.waiting.store(0, Ordering::Relaxed);
        }
        self.passed.notify_waiters();
    }

    /// Completes when the member has passed `stream`.
    pub async fn passed(&self, stream: u32) {
        loop {
            let passed = self.passed.notified();
            if self.answered.load(Ordering::Relaxed) > stream {
                return;
            }
            passed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn a_few_are_admitted_until_a_later_stream_is_answered() {
        let resets = Resets::default();
        assert!((0..3).all(|stream| resets.admit(2 * stream + 1, 3)));
        assert!(resets.any() && !resets.admit(7, 3));
        resets.answered(5);
        assert!(!resets.admit(9, 3), "streams after it may wait still");
        resets.answered(11);
        assert!(!resets.any() && resets.admit(13, 3));
    }

    #[test]
    fn never_more_than_a_few() {
        let resets = Resets::default();
        let admitted = (1..1000).filter(|stream| resets.admit(*stream, usize::MAX)).count();
        assert_eq!(admitted, Resets::MOST);
        assert!(!Resets::default().admit(1, 0));
    }

    #[test]
    fn what_waits_learns_of_a_later_answer_and_of_no_earlier_one() {
        let resets = Resets::default();
        resets.admit(5, 1);
        let mut passed = pin!(resets.passed(5));
        let mut poll = || passed.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        assert!(!poll());
        resets.answered(3);
        assert!(!poll());
        resets.answered(7);
        assert!(poll());
    }
}
