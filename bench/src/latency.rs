//! Percentiles of times measured one by one.

use std::time::Duration;

use anyhow::{Result, ensure};

/// The 50th and the 99th percentile in microseconds: the smallest value that this share of the
/// times does not exceed.
pub fn percentiles(mut times: Vec<Duration>) -> Result<(f64, f64)> {
    ensure!(!times.is_empty(), "nothing was timed");
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() * percent).div_ceil(100).max(1) - 1].as_secs_f64() * 1e6;
    Ok((at(50), at(99)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let times = |range: std::ops::RangeInclusive<u64>| range.rev().map(Duration::from_micros).collect::<Vec<_>>();
        let (p50, p99) = percentiles(times(1..=1000)).unwrap();
        assert_eq!((p50.round(), p99.round()), (500.0, 990.0));
        let (p50, p99) = percentiles(times(3..=3)).unwrap();
        assert_eq!((p50.round(), p99.round()), (3.0, 3.0));
        assert!(percentiles(Vec::new()).is_err());
    }
}
