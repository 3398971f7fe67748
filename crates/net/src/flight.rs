//! One run of something for all callers that want its outcome at the same time.

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// A run, as a task of its own: it goes on when the caller that began it leaves.
#[derive(Debug)]
pub struct Flight<T> {
    waiter: FlightWaiter<T>,
    task: AbortHandle,
}

/// Where a run's outcome is waited for.
#[derive(Debug, Clone)]
pub struct FlightWaiter<T>(watch::Receiver<Option<T>>);

// === impl Flight ===

impl<T: Clone + Send + Sync + 'static> Flight<T> {
    /// Begins `run` on `runtime`, and joins it. What `run` does at its end happens before any
    /// waiter gets its outcome.
    pub fn begin(runtime: &Handle, run: impl Future<Output = T> + Send + 'static) -> (Self, FlightWaiter<T>) {
        let (report, waiter) = watch::channel(None);
        let task = runtime.spawn(async move {
            let outcome = run.await;
            report.send_replace(Some(outcome));
        });
        let waiter = FlightWaiter(waiter);
        (Self { waiter: waiter.clone(), task: task.abort_handle() }, waiter)
    }

    /// To join a run that has not ended. A run whose task was lost, to a panic or with its runtime,
    /// has none.
    pub fn waiter(&self) -> Option<FlightWaiter<T>> {
        let FlightWaiter(waiter) = &self.waiter;
        let under_way = waiter.borrow().is_none() && waiter.has_changed().is_ok();
        under_way.then(|| self.waiter.clone())
    }

    /// No caller wants its outcome any more.
    pub fn abort(&self) {
        self.task.abort();
    }
}

// === impl FlightWaiter ===

impl<T: Clone> FlightWaiter<T> {
    /// `None`: the task was lost.
    pub async fn outcome(mut self) -> Option<T> {
        self.0.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn all_who_join_hear_the_same_and_a_run_that_is_over_is_joined_by_nobody() {
        let (go, gone) = oneshot::channel();
        let (flight, first) = Flight::begin(&Handle::current(), async { gone.await.unwrap() });
        let second = flight.waiter().unwrap();
        go.send(7).unwrap();
        for waiter in [first, second] {
            assert_eq!(waiter.outcome().await, Some(7));
        }
        assert!(flight.waiter().is_none());
    }

    #[tokio::test]
    async fn one_that_is_lost_is_known_to_be() {
        let (aborted, waiter) = Flight::begin(&Handle::current(), pending::<()>());
        aborted.abort();
        assert_eq!(waiter.outcome().await, None);
        assert!(aborted.waiter().is_none());
    }
}
