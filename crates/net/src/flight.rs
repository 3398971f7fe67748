//! One run of something for all who want its outcome at the same time.

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// A run, as a task of its own: it goes on when whoever began it leaves.
#[derive(Debug)]
pub struct Flight<T> {
    landing: Landing<T>,
    task: AbortHandle,
}

/// Where a run's outcome is waited for.
#[derive(Debug, Clone)]
pub struct Landing<T>(watch::Receiver<Option<T>>);

// === impl Flight ===

impl<T: Clone + Send + Sync + 'static> Flight<T> {
    /// Begins `run` on `runtime`, and joins it. What `run` does at its end happens before anybody
    /// hears of its outcome.
    pub fn begin(runtime: &Handle, run: impl Future<Output = T> + Send + 'static) -> (Self, Landing<T>) {
        let (report, landing) = watch::channel(None);
        let task = runtime.spawn(async move {
            let outcome = run.await;
            report.send_replace(Some(outcome));
        });
        let landing = Landing(landing);
        (Self { landing: landing.clone(), task: task.abort_handle() }, landing)
    }

    /// To join it, if it is under way. One whose task was lost, to a panic or with its runtime, is
    /// not.
    pub fn landing(&self) -> Option<Landing<T>> {
        let Landing(landing) = &self.landing;
        let under_way = landing.borrow().is_none() && landing.has_changed().is_ok();
        under_way.then(|| self.landing.clone())
    }

    /// Nobody wants its outcome any more.
    pub fn abort(&self) {
        self.task.abort();
    }
}

// === impl Landing ===

impl<T: Clone> Landing<T> {
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
        let second = flight.landing().unwrap();
        go.send(7).unwrap();
        for landing in [first, second] {
            assert_eq!(landing.outcome().await, Some(7));
        }
        assert!(flight.landing().is_none());
    }

    #[tokio::test]
    async fn one_that_is_lost_is_known_to_be() {
        let (aborted, landing) = Flight::begin(&Handle::current(), pending::<()>());
        aborted.abort();
        assert_eq!(landing.outcome().await, None);
        assert!(aborted.landing().is_none());
    }
}
