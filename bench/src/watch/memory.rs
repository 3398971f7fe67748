//! Memory of programs that have something to give back, or not all yet.

use std::time::Duration;

use anyhow::Result;
use tokio::time::{Instant, sleep};

use harness::usage::Tree;

const PAUSE: Duration = Duration::from_millis(250);
/// Samples in a row that differ by no more than [`TOLERANCE`].
const STABLE: usize = 4;
/// Change that counts as none, as a share of the whole.
const TOLERANCE: f64 = 0.005;

/// Resident bytes of `tree` when they no longer change, or after `limit`.
pub async fn settled(tree: &Tree, limit: Duration) -> Result<f64> {
    let start = Instant::now();
    let mut samples = vec![resident(tree)?];
    while !is_stable(&samples) && start.elapsed() < limit {
        sleep(PAUSE).await;
        samples.push(resident(tree)?);
    }
    Ok(samples.pop().unwrap_or_default())
}

/// The least number of resident bytes of `tree` within `time`; less than `enough` ends it.
pub async fn least(tree: &Tree, enough: f64, time: Duration) -> Result<f64> {
    let start = Instant::now();
    let mut least = resident(tree)?;
    while least > enough && start.elapsed() < time {
        sleep(PAUSE).await;
        least = least.min(resident(tree)?);
    }
    Ok(least)
}

fn is_stable(samples: &[f64]) -> bool {
    let Some(last) = samples.len().checked_sub(STABLE).map(|from| &samples[from..]) else { return false };
    let (low, high) = last.iter().fold((f64::MAX, 0.0_f64), |(low, high), &sample| (low.min(sample), high.max(sample)));
    high - low <= high * TOLERANCE
}

fn resident(tree: &Tree) -> Result<f64> {
    tree.usage().map(|usage| number(usage.resident))
}

#[expect(clippy::cast_precision_loss, reason = "below 2^52 bytes")]
fn number(bytes: u64) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_is_when_the_last_samples_are_close_together() {
        assert!(!is_stable(&[100.0; 3]), "too few");
        assert!(is_stable(&[50.0, 100.0, 100.2, 100.1, 100.0]));
        assert!(!is_stable(&[100.0, 100.0, 100.0, 101.0]));
    }

    #[tokio::test]
    async fn this_process_has_memory() {
        let tree = Tree::new([std::process::id()]);
        assert!(settled(&tree, Duration::ZERO).await.unwrap() > 1e6);
        assert!(least(&tree, f64::MAX, Duration::from_secs(1)).await.unwrap() > 1e6);
    }
}
