//! One connection to the far end, and its speed. [`crate::far`] has the far end's part.

use std::io::{Read, Write};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::time::Instant;

use crate::far::Command;

/// A byte stream to the far end.
pub(crate) trait Duplex: Read + Write + Send {}

impl<T: Read + Write + Send> Duplex for T {}

/// Which way bulk data goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Direction {
    Down,
    Up,
}

/// A connection that carries one command after the other.
pub(crate) struct Session {
    stream: Box<dyn Duplex>,
    direction: Direction,
}

/// Sent before anything is measured: more than the congestion window needs to grow to its final
/// size.
const WARMTH: u64 = 15_000_000;
/// Sent in one measure.
const BULK: u64 = 20_000_000;
/// Measures; their median counts.
const MEASURES: usize = 3;
/// Round trips; their median counts.
const ECHOES: usize = 15;
/// A connection that stands still for longer is broken.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

// === impl Session ===

impl Session {
    pub(crate) fn new(stream: Box<dyn Duplex>) -> Self {
        Self { stream, direction: Direction::Down }
    }

    /// One on which bulk data has gone in `direction`. It must be used at once: idle connections
    /// get cold.
    pub(crate) fn warmed(stream: Box<dyn Duplex>, direction: Direction) -> Result<Self> {
        let mut session = Self { stream, direction };
        session.transfer(WARMTH).context("while warming up")?;
        Ok(session)
    }

    /// Million bytes a second.
    #[allow(clippy::cast_precision_loss, reason = "less than 2^52")]
    pub(crate) fn rate(mut self) -> Result<f64> {
        let times: Result<Vec<f64>> = (0..MEASURES).map(|_| Ok(self.transfer(BULK)?.as_secs_f64())).collect();
        Ok(BULK as f64 / 1e6 / median(times?))
    }

    /// Seconds that a few bytes take there and back.
    pub(crate) fn round_trip(mut self) -> Result<f64> {
        let times: Result<Vec<f64>> = (0..ECHOES).map(|_| Ok(self.echo()?.as_secs_f64())).collect();
        Ok(median(times?))
    }

    fn transfer(&mut self, bytes: u64) -> Result<Duration> {
        let start = Instant::now();
        match self.direction {
            Direction::Down => {
                self.stream.write_all(&Command::Send.with(bytes))?;
                let read = std::io::copy(&mut Read::take(&mut self.stream, bytes), &mut std::io::sink())?;
                anyhow::ensure!(read == bytes, "{read} bytes came instead of {bytes}");
            }
            Direction::Up => {
                self.stream.write_all(&Command::Take.with(bytes))?;
                std::io::copy(&mut Read::take(std::io::repeat(7), bytes), &mut self.stream)?;
                self.stream.read_exact(&mut [0])?;
            }
        }
        Ok(start.elapsed())
    }

    fn echo(&mut self) -> Result<Duration> {
        let start = Instant::now();
        self.stream.write_all(&Command::Send.with(1))?;
        self.stream.read_exact(&mut [0])?;
        Ok(start.elapsed())
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}
