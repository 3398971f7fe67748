//! Connections opened through a tunnel.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::echo::count;
use super::{Entry, Stream, Tunnel, destination, echo};
use crate::latency::percentiles;

pub struct Dials {
    /// Microseconds, as the next.
    pub p50: f64,
    pub p99: f64,
    /// Processor time of the tunnel's processes, microseconds for each dial and its close.
    pub cpu: f64,
}

/// Most that are opened one after the other: the destination's ports stay in use for a minute after
/// each.
const MOST: usize = 2000;

impl Tunnel {
    /// Opens and closes, one after the other, for `time`. Where an open connection says nothing
    /// about the far end, the time ends with an echo.
    pub fn dial(&self, time: Duration) -> Result<Dials> {
        self.run(async {
            let echoed = !self.entry.confirms();
            let before = self.tree.usage()?;
            let until = Instant::now() + time;
            let mut times = Vec::new();
            while times.is_empty() || Instant::now() < until && times.len() < MOST {
                let start = Instant::now();
                let stream = open(&self.entry, self.destination.address, echoed).await?;
                times.push(start.elapsed());
                stream.close().await?;
            }
            self.dials(before, times)
        })
    }

    /// Opens `total`, `at_once` at a time, with an echo on each.
    pub fn burst(&self, total: usize, at_once: usize) -> Result<Dials> {
        self.run(async {
            let before = self.tree.usage()?;
            let (mut times, mut running, mut started) = (Vec::new(), JoinSet::new(), 0);
            while times.len() < total {
                while started < total && running.len() < at_once {
                    running.spawn(timed(Arc::clone(&self.entry), self.destination.address));
                    started += 1;
                }
                if let Some(time) = running.join_next().await {
                    times.push(time??);
                }
            }
            self.dials(before, times)
        })
    }

    fn dials(&self, before: harness::usage::Usage, times: Vec<Duration>) -> Result<Dials> {
        let cpu = self.tree.cpu_since(before)?.as_secs_f64() * 1e6 / count(times.len());
        let (p50, p99) = percentiles(times)?;
        Ok(Dials { p50, p99, cpu })
    }
}

async fn timed(entry: Arc<Entry>, destination: SocketAddr) -> Result<Duration> {
    let start = Instant::now();
    let stream = open(&entry, destination, true).await?;
    let time = start.elapsed();
    stream.close().await?;
    Ok(time)
}

async fn open(entry: &Entry, destination: SocketAddr, echoed: bool) -> Result<Stream> {
    let mut stream = entry.open(destination).await?;
    if echoed {
        stream.write_u8(destination::ECHO).await?;
        echo(&mut stream).await?;
    }
    Ok(stream)
}
