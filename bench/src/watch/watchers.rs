//! Many watches held open at the same time, over many HTTP/2 connections. Everything runs on the
//! caller's runtime, of one thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use h2::RecvStream;
use h2::client::SendRequest;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::lines;
use crate::caller::{self, Caller};

/// Limit for all response heads to arrive.
const OPEN_LIMIT: Duration = Duration::from_mins(3);
/// Latencies that are kept; more are only counted.
const MAX_LATENCIES: usize = 4 << 20;

/// Numbers of connections and of watches.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub connections: usize,
    /// Watches on each connection.
    pub streams: usize,
}

/// Open watches. They are read until dropped, which closes their connections.
pub struct Watchers {
    tally: Arc<Tally>,
    readers: JoinSet<()>,
    /// The connections end with the last of their senders.
    _callers: Vec<SendRequest<Bytes>>,
}

/// Counts of arrived events.
#[derive(Debug, Default)]
struct Tally {
    events: AtomicUsize,
    latencies: Mutex<Vec<Duration>>,
}

/// Events that arrived between two moments.
#[derive(Debug)]
pub struct Arrived {
    events: usize,
    /// Times from when an event was due until it was read.
    pub latencies: Vec<Duration>,
}

// === impl Plan ===

impl Plan {
    pub const fn total(self) -> usize {
        self.connections * self.streams
    }

    /// For shares of it.
    #[expect(clippy::cast_precision_loss, reason = "thousands")]
    pub const fn amount(self) -> f64 {
        self.total() as f64
    }
}

// === impl Watchers ===

impl Watchers {
    /// Opens `plan` watches of `path` with `caller`; each has its head when it returns.
    pub async fn open(caller: &Caller, path: &str, plan: Plan) -> Result<Self> {
        timeout(OPEN_LIMIT, Self::open_all(caller, path, plan))
            .await
            .with_context(|| format!("{} watches are not open after {OPEN_LIMIT:?}", plan.total()))?
    }

    async fn open_all(caller: &Caller, path: &str, plan: Plan) -> Result<Self> {
        let tally = Arc::new(Tally::default());
        let mut opening = JoinSet::new();
        for _ in 0..plan.connections {
            opening.spawn(open_connection(caller.clone(), path.to_owned(), plan.streams));
        }
        let (mut readers, mut callers) = (JoinSet::new(), Vec::new());
        while let Some(opened) = opening.join_next().await {
            let (sender, streams) = opened??;
            callers.push(sender);
            for stream in streams {
                readers.spawn(read(stream, Arc::clone(&tally)));
            }
        }
        Ok(Self { tally, readers, _callers: callers })
    }

    /// Fails if one of them has ended.
    pub fn check(&mut self) -> Result<()> {
        let ended = std::iter::from_fn(|| self.readers.try_join_next()).count();
        ensure!(ended == 0, "{ended} watches have ended");
        Ok(())
    }

    /// Events since the last call, or since the watches were opened.
    pub fn take(&self) -> Arrived {
        let latencies = std::mem::take(&mut *self.tally.latencies.lock());
        Arrived { events: self.tally.events.swap(0, Ordering::Relaxed), latencies }
    }
}

// === impl Arrived ===

impl Arrived {
    /// How many.
    #[expect(clippy::cast_precision_loss, reason = "millions at most")]
    pub fn events(&self) -> f64 {
        self.events as f64
    }
}

async fn open_connection(
    caller: Caller,
    path: String,
    streams: usize,
) -> Result<(SendRequest<Bytes>, Vec<RecvStream>)> {
    let sender = caller.connect().await?;
    let mut opened = Vec::with_capacity(streams);
    for _ in 0..streams {
        let response = caller.send(&sender, caller.get(&path)?).await?;
        opened.push(caller::successful(response).await?);
    }
    Ok((sender, opened))
}

async fn read(mut stream: RecvStream, tally: Arc<Tally>) {
    while let Some(Ok(chunk)) = stream.data().await {
        if stream.flow_control().release_capacity(chunk.len()).is_err() {
            return;
        }
        tally.count(&chunk);
    }
}

// === impl Tally ===

impl Tally {
    fn count(&self, chunk: &[u8]) {
        let lines = chunk.split(|byte| *byte == b'\n').count() - 1;
        self.events.fetch_add(lines, Ordering::Relaxed);
        let mut latencies = self.latencies.lock();
        if let Some(due) = lines::due(chunk).filter(|_| latencies.len() < MAX_LATENCIES) {
            latencies.push(lines::since_epoch().saturating_sub(due));
        }
    }
}
