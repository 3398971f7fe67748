//! One operation over many clusters.
//!
//! Everything runs in the task that reads the events: dropping [`Each`] cancels what is in flight
//! and starts nothing more. A reader that pauses holds up everything but the deadlines.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use api::cluster_name::ClusterName;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, Stream, StreamExt as _};
use tokio::time::timeout;

use crate::failure::Failure;

/// Default number of concurrent clusters. kube's clients speak HTTP/1.1, so each cluster takes a
/// connection to the hub.
const AT_ONCE: usize = 32;
/// Default time for one cluster: longer than a gateway dials.
const WITHIN: Duration = Duration::from_secs(30);

/// Limits of an operation over many clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most concurrent clusters; 0 counts as 1.
    pub at_once: usize,
    /// Time for one cluster, from its start.
    pub within: Duration,
}

/// A running operation: a stream of its events. See [`each`].
#[must_use = "nothing runs before its events are read"]
pub struct Each<'a, T> {
    waiting: std::iter::Enumerate<std::vec::IntoIter<ClusterName>>,
    start: Box<dyn FnMut(ClusterName) -> BoxFuture<'a, Result<T, Failure>> + Send + 'a>,
    running: FuturesUnordered<BoxFuture<'a, Outcome<T>>>,
    limits: Limits,
    progress: Progress,
}

/// An event of a running operation.
#[derive(Debug)]
pub enum Event<T> {
    Started(ClusterName),
    Finished(Outcome<T>),
}

/// The outcome for one cluster.
#[derive(Debug)]
pub struct Outcome<T> {
    /// Index of the cluster among those given, from 0.
    pub place: usize,
    pub cluster: ClusterName,
    pub result: Result<T, Failure>,
}

/// Progress of an operation, in clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub all: usize,
    pub started: usize,
    /// Failed or not.
    pub finished: usize,
    pub failed: usize,
}

/// Runs `run` for each of `clusters`, within `limits`. A failure is the outcome of its own cluster
/// only. A silent cluster takes one of the concurrent places until its time is over: `n` clusters
/// take at most `n / at_once` (rounded up) times `within`.
pub fn each<'a, T, E, F, R>(clusters: impl IntoIterator<Item = ClusterName>, limits: Limits, mut run: F) -> Each<'a, T>
where
    F: FnMut(ClusterName) -> R + Send + 'a,
    R: Future<Output = Result<T, E>> + Send + 'a,
    E: Into<Failure>,
    T: Send + 'a,
{
    let clusters: Vec<_> = clusters.into_iter().collect();
    Each {
        progress: Progress { all: clusters.len(), started: 0, finished: 0, failed: 0 },
        waiting: clusters.into_iter().enumerate(),
        start: Box::new(move |cluster| run(cluster).map(|result| result.map_err(Into::into)).boxed()),
        running: FuturesUnordered::new(),
        limits,
    }
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self { at_once: AT_ONCE, within: WITHIN }
    }
}

// === impl Each ===

impl<'a, T: Send + 'a> Each<'a, T> {
    /// The progress so far.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// Runs to the end, calls `told` for each event, and returns the outcomes in the order of the
    /// given clusters.
    pub async fn in_order(mut self, mut told: impl FnMut(Progress, &Event<T>)) -> Vec<Outcome<T>> {
        let mut outcomes = Vec::with_capacity(self.progress.all);
        while let Some(event) = self.next().await {
            told(self.progress, &event);
            if let Event::Finished(outcome) = event {
                outcomes.push(outcome);
            }
        }
        outcomes.sort_unstable_by_key(|outcome| outcome.place);
        outcomes
    }
}

impl<'a, T: Send + 'a> Stream for Each<'a, T> {
    type Item = Event<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event<T>>> {
        let this = &mut *self;
        if this.running.len() < this.limits.at_once.max(1)
            && let Some((place, cluster)) = this.waiting.next()
        {
            let (run, within) = ((this.start)(cluster.clone()), this.limits.within);
            let named = cluster.clone();
            let bounded = async move {
                let result = timeout(within, run).await.unwrap_or_else(|_| Err(Failure::late(within)));
                Outcome { place, result: result.map_err(|failure| failure.at(&named)), cluster: named }
            };
            this.running.push(bounded.boxed());
            this.progress.started += 1;
            return Poll::Ready(Some(Event::Started(cluster)));
        }
        let Some(outcome) = ready!(this.running.poll_next_unpin(context)) else { return Poll::Ready(None) };
        this.progress.finished += 1;
        this.progress.failed += usize::from(outcome.result.is_err());
        Poll::Ready(Some(Event::Finished(outcome)))
    }
}

#[cfg(test)]
mod tests;
