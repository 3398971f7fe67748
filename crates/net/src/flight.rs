//! Runs something once for all callers that want its outcome at the same time.

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// A run as its own task: it continues when the caller that began it leaves.
#[derive(Debug)]
pub struct Flight<T> {
    waiter: FlightWaiter<T>,
    task: AbortHandle,
}

/// Waits for a run's outcome.
#[derive(Debug, Clone)]
pub struct FlightWaiter<T>(watch::Receiver<Option<T>>);

// === impl Flight ===

impl<T: Clone + Send + Sync + 'static> Flight<T> {
    /// Begins `run` on `runtime` and joins it. `run` has ended before any waiter gets its outcome.
    pub fn begin(runtime: &Handle, run: impl Future<Output = T> + Send + 'static) -> (Self, FlightWaiter<T>) {
        let (report, waiter) = watch::channel(None);
        let task = runtime.spawn(async move {
            let outcome = run.await;
            report.send_replace(Some(outcome));
        });
        let waiter = FlightWaiter(waiter);
        (Self { waiter: waiter.clone(), task: task.abort_handle() }, waiter)
    }

    /// Joins a run that has not ended. `None` if it has ended, or if its task was lost in a panic
    /// or with its runtime.
    pub fn waiter(&self) -> Option<FlightWaiter<T>> {
        let FlightWaiter(waiter) = &self.waiter;
        let under_way = waiter.borrow().is_none() && waiter.has_changed().is_ok();
        under_way.then(|| self.waiter.clone())
    }

    /// Ends the run, because no caller wants its outcome any more.
    pub fn abort(&self) {
        self.task.abort();
    }
}

// === impl FlightWaiter ===

impl<T: Clone> FlightWaiter<T> {
    /// `None` if the task was lost.
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
