//! As fast as answers come, a fixed number at once: what h2load does.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::repeater::{Connection, Repeater};

/// For requests in flight when the time is over.
pub(super) const GRACE: Duration = Duration::from_secs(20);

/// The results.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    pub requests: f64,
    pub elapsed: Duration,
    /// Mean time from sending a request until the end of its answer.
    pub mean: Duration,
}

// === impl Summary ===

impl Summary {
    /// Sums up `tasks` from `start` until all have ended: each returns its number of answered
    /// requests, and all of them together had `at_once` in flight.
    pub(super) async fn of(mut tasks: JoinSet<Result<u32>>, start: Instant, at_once: u32) -> Result<Self> {
        let mut requests = 0;
        while let Some(count) = tasks.join_next().await {
            requests += count??;
        }
        ensure!(requests > 0, "no request was answered");
        let elapsed = start.elapsed();
        Ok(Self { requests: requests.into(), elapsed, mean: elapsed * at_once / requests })
    }
}

/// Keeps `streams` requests in flight on each of `connections` for `time`. Fails when a request
/// does.
pub async fn run(caller: &Repeater, connections: usize, streams: usize, time: Duration) -> Result<Summary> {
    let mut tasks = JoinSet::new();
    let mut open = Vec::new();
    for _ in 0..connections {
        open.push(caller.connect().await?);
    }
    let start = Instant::now();
    for connection in open.iter().flat_map(|connection| std::iter::repeat_n(connection, streams)) {
        tasks.spawn(ask(connection.clone(), start + time));
    }
    Summary::of(tasks, start, u32::try_from(connections * streams)?).await
}

/// Counts the requests that are answered until `end`, of which there is at least one.
async fn ask(connection: Connection, end: Instant) -> Result<u32> {
    let mut count = 0;
    while count == 0 || Instant::now() < end {
        timeout_at(end + GRACE, connection.exchange()).await.context("no answer in time")??;
        count += 1;
    }
    Ok(count)
}
