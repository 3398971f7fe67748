//! Histograms of durations that all cores update at once.
//!
//! A histogram of `prometheus_client` has a mutex: at the end of every request all cores would
//! contend for it, most of all for that of the busiest cluster. Here an observation is two atomic
//! additions. Readers may see one of them before the other.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// Cheap to clone. Clones are the same histogram.
#[derive(Clone, Debug)]
pub struct Histogram(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// In seconds, ascending.
    bounds: &'static [f64],
    /// By bucket. The last one counts durations beyond all bounds.
    counts: Box<[AtomicU64]>,
    /// In microseconds. With 10,000 streams at a time it overflows after decades. Nanoseconds would
    /// overflow within weeks.
    sum: AtomicU64,
}

/// The observations so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    pub sum: Duration,
    /// By bucket: its bound (`None` for the last), and its number of observations. Not cumulative.
    pub buckets: Vec<(Option<Duration>, u64)>,
}

// === impl Histogram ===

impl Histogram {
    /// `bounds`: the largest duration of each bucket, in seconds, ascending.
    pub fn new(bounds: &'static [f64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self(Arc::new(Inner { bounds, counts, sum: AtomicU64::new(0) }))
    }

    pub fn observe(&self, took: Duration) {
        let Inner { bounds, counts, sum } = &*self.0;
        let seconds = took.as_secs_f64();
        let bucket = bounds.iter().position(|bound| seconds <= *bound).unwrap_or(bounds.len());
        counts[bucket].fetch_add(1, Ordering::Relaxed);
        let micros = took.saturating_add(Duration::from_nanos(500)).as_micros();
        sum.fetch_add(u64::try_from(micros).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub fn read(&self) -> Reading {
        let Inner { bounds, counts, sum } = &*self.0;
        let bounds = bounds.iter().map(|bound| Some(Duration::from_secs_f64(*bound))).chain([None]);
        let counts = counts.iter().map(|count| count.load(Ordering::Relaxed));
        Reading { sum: Duration::from_micros(sum.load(Ordering::Relaxed)), buckets: bounds.zip(counts).collect() }
    }
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let bounds = self.0.bounds.iter().copied().chain([f64::INFINITY]);
        let counts = self.0.counts.iter().map(|count| count.load(Ordering::Relaxed));
        let buckets: Vec<_> = bounds.zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = Duration::from_micros(self.0.sum.load(Ordering::Relaxed)).as_secs_f64();
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn what_is_written_is_what_prometheus_reads() {
        let (mut registry, histogram) = (Registry::default(), Histogram::new(&[0.0, 0.1, 1.0]));
        registry.register("took_seconds", "Time", histogram.clone());
        for millis in [0, 100, 101, 1000, 1001] {
            histogram.observe(Duration::from_millis(millis));
        }
        histogram.observe(Duration::from_nanos(1_600));
        let read = histogram.read();
        let (bounds, counts): (Vec<_>, Vec<_>) = read.buckets.into_iter().unzip();
        assert_eq!(
            bounds,
            [Some(Duration::ZERO), Some(Duration::from_millis(100)), Some(Duration::from_secs(1)), None]
        );
        assert_eq!((counts, read.sum), (vec![1, 2, 2, 1], Duration::from_micros(2_202_002)));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("into a String");
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            "took_seconds_sum 2.202002",
            "took_seconds_count 6",
            "took_seconds_bucket{le=\"0.0\"} 1",
            "took_seconds_bucket{le=\"0.1\"} 3",
            "took_seconds_bucket{le=\"1.0\"} 5",
            "took_seconds_bucket{le=\"+Inf\"} 6",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn nothing_is_lost_when_all_add_at_once() {
        let histogram = Histogram::new(&[1.0]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| histogram.observe(Duration::from_micros(3))));
            }
        });
        assert_eq!(histogram.0.counts[0].load(Ordering::Relaxed), 40_000);
        assert_eq!(histogram.0.sum.load(Ordering::Relaxed), 120_000);
    }
}
