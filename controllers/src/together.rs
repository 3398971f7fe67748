//! Loops and calls that run in one task, of which only those are polled that were woken. `join!`
//! and kube's queue poll each one whenever any is woken.

use std::future::pending;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};

/// Runs all of these until the last has ended. A part has a dozen watches, one of which may have a
/// hundred events a second.
pub async fn all<'a>(each: impl IntoIterator<Item = BoxFuture<'a, ()>>) {
    let mut running: FuturesUnordered<_> = each.into_iter().collect();
    while running.next().await.is_some() {}
}

/// Like [`all`], for three futures of different types, which generic code cannot box as `Send`.
pub async fn three(one: impl Future<Output = ()>, another: impl Future<Output = ()>, last: impl Future<Output = ()>) {
    let each = [one.left_future().left_future(), another.right_future().left_future(), last.right_future()];
    let mut running: FuturesUnordered<_> = each.into_iter().collect();
    while running.next().await.is_some() {}
}

/// Polls the future only when it was woken itself, for a caller that polls all it has.
pub fn alone<F: Future>(future: F) -> impl Future<Output = F::Output> {
    // A set wakes its caller whenever it has polled as many as are in it. With a second one, which
    // nothing wakes, that is after the first poll only.
    let mut running = FuturesUnordered::from_iter([future.left_future(), pending().right_future()]);
    async move { running.select_next_some().await }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Wake, Waker};

    use futures_util::task::AtomicWaker;

    use super::*;

    #[tokio::test]
    async fn what_is_not_woken_is_not_polled() {
        let polls = &AtomicUsize::new(0);
        let still = || {
            poll_fn(move |_| {
                polls.fetch_add(1, Ordering::Relaxed);
                Poll::<()>::Pending
            })
        };
        tokio::select! {
            () = all([still().boxed(), busy(100).boxed()]) => unreachable!("one never ends"),
            () = three(still(), busy(100), still()) => unreachable!("two never end"),
            () = alone(still()) => unreachable!("it never ends"),
            () = busy(200) => {}
        }
        assert_eq!(polls.load(Ordering::Relaxed), 4);
        assert_eq!(alone(async { 1 }).await, 1);
    }

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn one_that_waits_wakes_nobody_after_its_first_poll() {
        let (own, wakes) = (AtomicWaker::new(), Arc::<Wakes>::default());
        let caller = Waker::from(Arc::clone(&wakes));
        let mut waiting = pin!(alone(poll_fn(|cx| {
            own.register(cx.waker());
            Poll::<()>::Pending
        })));
        let mut poll = || assert!(waiting.as_mut().poll(&mut Context::from_waker(&caller)).is_pending());
        poll();
        let first = wakes.0.load(Ordering::Relaxed);
        assert!(first <= 1, "{first}");
        for times in 1..=3 {
            own.wake();
            poll();
            assert_eq!(wakes.0.load(Ordering::Relaxed), first + times);
        }
    }

    async fn busy(times: usize) {
        for _ in 0..times {
            tokio::task::yield_now().await;
        }
    }
}
