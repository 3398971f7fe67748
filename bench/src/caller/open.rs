//! Requests that begin when they are due, whether or not earlier ones are answered: the time that
//! callers wait at a given rate.
//!
//! Latency counts from the moment a request was due, so that a proxy that stalls is charged for
//! every caller that would have come meanwhile (closed loops usually omit this). Arrivals are those
//! of many independent callers: exponential pauses, from the same seed for every target.

mod alarm;

use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use self::alarm::Alarm;
use super::repeater::Repeater;

/// For requests in flight when the time is over.
const GRACE: Duration = Duration::from_secs(20);
/// Any will do, as long as it is the same in all runs.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

/// Pauses between arrivals.
struct Arrivals {
    state: u64,
    mean: f64,
}

/// Time of each request from the moment it was due: sends `rate` requests a second for `time`, in
/// turns over `connections`. Fails when a request does.
pub async fn run(caller: &Repeater, connections: usize, rate: f64, time: Duration) -> Result<Vec<Duration>> {
    let mut open = Vec::new();
    for _ in 0..connections {
        open.push(caller.connect().await?);
    }
    let (alarm, mut tasks) = (Alarm::new()?, JoinSet::new());
    let start = Instant::now();
    let mut due = Duration::ZERO;
    let mut targets = open.iter().cycle();
    for pause in Arrivals::new(rate) {
        due += pause;
        if due > time {
            break;
        }
        let at = start + due;
        alarm.wait_until(at).await?;
        let connection = targets.next().context("no connections")?.clone();
        tasks.spawn(async move {
            connection.exchange().await?;
            anyhow::Ok(at.elapsed())
        });
    }
    let mut latencies = Vec::new();
    let all = timeout(GRACE, async {
        while let Some(latency) = tasks.join_next().await {
            latencies.push(latency??);
        }
        anyhow::Ok(())
    });
    all.await.context("requests are not answered")??;
    Ok(latencies)
}

// === impl Arrivals ===

impl Arrivals {
    fn new(rate: f64) -> Self {
        Self { state: SEED, mean: 1.0 / rate }
    }
}

impl Iterator for Arrivals {
    type Item = Duration;

    /// `xorshift64*`, whose upper bits are even enough for this.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    fn next(&mut self) -> Option<Duration> {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let bits = self.state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11;
        let uniform = (bits as f64 + 1.0) / (1_u64 << 53) as f64; // in (0, 1]
        Some(Duration::from_secs_f64(-uniform.ln() * self.mean))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_have_the_rate_and_no_rhythm() {
        let pauses = Arrivals::new(1000.0).take(100_000).collect::<Vec<_>>();
        let mean = pauses.iter().sum::<Duration>() / 100_000;
        assert!((990..1010).contains(&mean.as_micros()), "{mean:?}");
        let short = pauses.iter().filter(|pause| pause.as_micros() < 693).count();
        assert!((49_000..51_000).contains(&short), "half of them below the median: {short}");
    }
}
