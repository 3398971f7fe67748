//! Requests one after the other on each of many streams, spread over many paths: as load generators
//! send them, without their limits on paths.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use h2::client::SendRequest;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::caller::Caller;

const CONNECTIONS: usize = 4;
/// Streams on each connection.
const STREAMS: usize = 8;

/// The requests, and the limits: the first one reached ends the load.
#[derive(Clone)]
pub struct Load {
    /// Paths to request in turn, from the first on.
    pub paths: Arc<[String]>,
    pub requests: usize,
    pub time: Duration,
}

/// Everything its streams share.
struct Shared {
    caller: Caller,
    load: Load,
    end: Instant,
    begun: AtomicUsize,
    answered: AtomicUsize,
}

/// Sends `load` to the server of `caller`, over 4 connections with 8 streams each, and returns the
/// number of answered requests.
/// # Errors
/// An answer that is not successful.
pub async fn run(caller: &Caller, load: &Load) -> Result<f64> {
    let shared = Arc::new(Shared {
        caller: caller.clone(),
        load: load.clone(),
        end: Instant::now() + load.time,
        begun: AtomicUsize::new(0),
        answered: AtomicUsize::new(0),
    });
    let mut streams = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let connection = caller.connect().await?;
        for _ in 0..STREAMS {
            streams.spawn(stream(Arc::clone(&shared), connection.clone()));
        }
    }
    while let Some(ended) = streams.join_next().await {
        ended??;
    }
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    Ok(shared.answered.load(Ordering::Relaxed) as f64)
}

async fn stream(shared: Arc<Shared>, connection: SendRequest<Bytes>) -> Result<()> {
    while Instant::now() < shared.end {
        let number = shared.begun.fetch_add(1, Ordering::Relaxed);
        if number >= shared.load.requests {
            break;
        }
        let path = &shared.load.paths[number % shared.load.paths.len()];
        shared.caller.ask(&connection, shared.caller.get(path)?).await?;
        shared.answered.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
