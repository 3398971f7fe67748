//! Waits for a cancellation beside something that is polled much more often.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Completes when its token is cancelled. Tokio's own future takes two locks and compares wakers at
/// each poll, and a watch polls one with each event, a connection with each turn. Here, all polls
/// of a task but the first only look at the token.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Cancellation {
    token: CancellationToken,
    wait: Pin<Box<WaitForCancellationFutureOwned>>,
    /// The one that `wait` has.
    waker: Option<Waker>,
}

// === impl Cancellation ===

impl Cancellation {
    pub fn of(token: CancellationToken) -> Self {
        Self { wait: Box::pin(token.clone().cancelled_owned()), token, waker: None }
    }
}

impl Future for Cancellation {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            return if this.token.is_cancelled() { Poll::Ready(()) } else { Poll::Pending };
        }
        let waited = this.wait.as_mut().poll(cx);
        if waited.is_pending() {
            this.waker = Some(cx.waker().clone());
        }
        waited
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use kit::wait::{WAIT, within};

    use super::*;

    #[test]
    fn each_poll_notices_the_cancellation() {
        let token = CancellationToken::new();
        let mut cancellation = Cancellation::of(token.clone());
        for _ in 0..3 {
            assert_eq!((&mut cancellation).now_or_never(), None);
        }
        token.cancel();
        assert_eq!((&mut cancellation).now_or_never(), Some(()));
    }

    #[tokio::test]
    async fn the_task_that_polled_last_is_woken() {
        let token = CancellationToken::new();
        let mut cancellation = Cancellation::of(token.clone());
        assert_eq!((&mut cancellation).now_or_never(), None, "by another waker");
        let waiting = tokio::spawn(cancellation);
        tokio::task::yield_now().await;
        token.cancel();
        within(WAIT, "the end", waiting).await.unwrap();
    }
}
