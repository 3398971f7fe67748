//! Randomness for jitter. Not for secrets.

use std::hash::{BuildHasher as _, RandomState};

/// A number in `[0, 1)`. Each `RandomState` has another key; that is random enough to spread
/// retries.
pub fn fraction() -> f64 {
    let bits = u32::try_from(RandomState::new().hash_one(()) >> 32).unwrap_or(u32::MAX);
    f64::from(bits) / (f64::from(u32::MAX) + 1.0)
}

/// Sixteen hexadecimal digits that tell this process from any other.
pub fn identifier() -> String {
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}
