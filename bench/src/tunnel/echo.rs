//! Words there and back over one connection.

use std::time::Duration;

use anyhow::Result;
use tokio::io::AsyncWriteExt as _;
use tokio::time::Instant;

use super::{Tunnel, destination, echo};
use crate::latency::percentiles;

pub struct Echo {
    /// Microseconds, as the next.
    pub p50: f64,
    pub p99: f64,
    /// Processor time of the tunnel's processes, microseconds for each echo.
    pub cpu: f64,
}

/// Echoes that are not measured.
const WARM: usize = 100;

impl Tunnel {
    /// 64 bytes, one after the other for `time`.
    pub fn echo(&self, time: Duration) -> Result<Echo> {
        self.run(async {
            let mut stream = self.entry.open(self.destination.address).await?;
            stream.write_u8(destination::ECHO).await?;
            for _ in 0..WARM {
                echo(&mut stream).await?;
            }
            let before = self.tree.usage()?;
            let until = Instant::now() + time;
            let mut times = Vec::new();
            while times.is_empty() || Instant::now() < until {
                let start = Instant::now();
                echo(&mut stream).await?;
                times.push(start.elapsed());
            }
            let cpu = self.tree.cpu_since(before)?.as_secs_f64() * 1e6 / count(times.len());
            stream.close().await?;
            let (p50, p99) = percentiles(times)?;
            Ok(Echo { p50, p99, cpu })
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub fn count(of: usize) -> f64 {
    of.max(1) as f64
}
