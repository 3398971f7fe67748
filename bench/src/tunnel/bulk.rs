//! Bytes through a tunnel, as fast as it takes them.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::destination::{SEND, SWALLOW};
use super::{ANSWER, Stream, Tunnel};

/// Bytes read or written at once here.
const PIECE: usize = 256 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the destination.
    Down,
    /// To it.
    Up,
}

pub struct Bulk {
    /// Processor time of the tunnel's processes; a MB is a million bytes.
    pub cpu_ms_per_mb: f64,
    pub mb_per_second: f64,
}

impl Tunnel {
    /// Moves bytes over `streams` at a time for `time`, in units of `unit` bytes, each acknowledged
    /// by its whole arrival.
    pub fn bulk(&self, direction: Direction, streams: usize, unit: u64, time: Duration) -> Result<Bulk> {
        self.run(async {
            let mut open = Vec::new();
            for _ in 0..streams {
                let mut stream = self.entry.open(self.destination.address).await?;
                transfer(&mut stream, direction, unit).await?; // windows and buffers grow in the first
                open.push(stream);
            }
            let (before, start) = (self.tree.usage()?, Instant::now());
            let until = start + time;
            let mut running = JoinSet::new();
            for stream in open {
                running.spawn(keep_busy(stream, direction, unit, until));
            }
            let mut bytes = 0;
            while let Some(moved) = running.join_next().await {
                bytes += moved??;
            }
            let (elapsed, cpu) = (start.elapsed(), self.tree.cpu_since(before)?);
            #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
            let megabytes = bytes as f64 / 1e6;
            let cpu_ms_per_mb = cpu.as_secs_f64() * 1e3 / megabytes;
            Ok(Bulk { cpu_ms_per_mb, mb_per_second: megabytes / elapsed.as_secs_f64() })
        })
    }
}

async fn keep_busy(mut stream: Stream, direction: Direction, unit: u64, until: Instant) -> Result<u64> {
    let mut bytes = 0;
    while bytes == 0 || Instant::now() < until {
        transfer(&mut stream, direction, unit).await?;
        bytes += unit;
    }
    stream.close().await?;
    Ok(bytes)
}

async fn transfer(stream: &mut Stream, direction: Direction, unit: u64) -> Result<()> {
    let moved = async {
        match direction {
            Direction::Down => download(stream, unit).await,
            Direction::Up => upload(stream, unit).await,
        }
    };
    timeout(ANSWER, moved).await.with_context(|| format!("{unit} bytes took more than {ANSWER:?}"))?
}

async fn download(stream: &mut Stream, unit: u64) -> Result<()> {
    command(stream, SEND, unit).await?;
    let mut buffer = vec![0; PIECE];
    let mut left = unit;
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        let read = stream.read(&mut buffer[..most]).await?;
        ensure!(read > 0, "it ended {left} bytes early");
        left -= read as u64;
    }
    Ok(())
}

async fn upload(stream: &mut Stream, unit: u64) -> Result<()> {
    command(stream, SWALLOW, unit).await?;
    let buffer = vec![7; PIECE];
    let mut left = unit;
    while left > 0 {
        let now = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        stream.write_all(&buffer[..now]).await?;
        left -= now as u64;
    }
    stream.flush().await?;
    stream.read_u8().await.context("the end was not acknowledged")?;
    Ok(())
}

async fn command(stream: &mut Stream, command: u8, unit: u64) -> Result<()> {
    let mut words = vec![command];
    words.extend(unit.to_be_bytes());
    stream.write_all(&words).await?;
    Ok(stream.flush().await?)
}
