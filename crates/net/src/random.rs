//! Randomness for jitter. Not for secrets.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// A number in `[0, 1)`. Each `RandomState` has another key, which is random enough to spread
/// retries.
pub fn fraction() -> f64 {
    let bits = u32::try_from(RandomState::new().hash_one(()) >> 32).unwrap_or(u32::MAX);
    f64::from(bits) / (f64::from(u32::MAX) + 1.0)
}

/// `wait`, or less by up to `share` of it, from 0 to 1: tasks that began together drift apart, and
/// none is late.
pub fn sooner(wait: Duration, share: f64) -> Duration {
    wait.mul_f64(1.0 - share * fraction())
}

/// Sixteen hexadecimal digits that distinguish this process from any other.
pub fn identifier() -> String {
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}
