//! Rates of a cluster's traffic, each from two readings of a replica's counters.
//!
//! The hub asks any replica of the gateway, and each replica counts only its own requests. So
//! readings are kept by replica, and the sum over those that answered recently is shown.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use api::traffic::{Bucket, RecentFailure, Traffic};
use tokio::time::Instant;

/// Points of a line in a chart.
const POINTS: usize = 60;
/// Most replicas that are kept: more than a gateway has.
const REPLICAS: usize = 16;
/// A replica no longer counts when it has not answered for longer than this, and than this many
/// looks take.
const LATELY: Duration = Duration::from_mins(1);
const LOOKS: u32 = 6;
/// Readings closer together than this give no rate: two pages of one cluster cause them.
const CLOSEST: Duration = Duration::from_millis(500);
/// Most failures that are shown.
const FAILURES: usize = 20;

/// Readings of one cluster's traffic.
#[derive(Debug, Default)]
pub struct History {
    replicas: BTreeMap<String, Replica>,
    points: VecDeque<Point>,
}

#[derive(Debug)]
struct Replica {
    read: Instant,
    newest: Traffic,
    rates: Rates,
}

/// Rates per second, between two readings.
#[derive(Debug, Clone, Default, PartialEq)]
struct Rates {
    requests: f64,
    errors: f64,
    /// Requests between the two readings, by bucket.
    buckets: Vec<Bucket>,
}

/// A point of a chart.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Point {
    /// Requests per second.
    pub requests: f64,
    /// Requests answered with 5xx, per second.
    pub errors: f64,
    /// Durations in milliseconds, if there were requests.
    pub median: Option<f64>,
    pub slowest: Option<f64>,
}

/// The sum over replicas.
#[derive(Debug, Default, PartialEq)]
pub struct Sum {
    pub replicas: Vec<String>,
    pub in_flight: i64,
    pub streams: i64,
    pub upgrades: i64,
    pub connections: i64,
    pub circuit_open: bool,
    /// Answers by status code, since the replicas began to count.
    pub codes: BTreeMap<u16, u64>,
    pub sides: BTreeMap<String, u64>,
    /// Newest first.
    pub failures: Vec<RecentFailure>,
}

// === impl History ===

impl History {
    /// Adds a replica's answer at `now`. A look comes every `interval`.
    pub fn add(&mut self, traffic: Traffic, now: Instant, interval: Duration) {
        let lately = LATELY.max(interval.saturating_mul(LOOKS));
        self.replicas.retain(|_, replica| now.duration_since(replica.read) < lately);
        let is_close = |known: &Replica| now.duration_since(known.read) < CLOSEST;
        if self.replicas.get(&traffic.replica).is_some_and(is_close) {
            return;
        }
        let before = self.replicas.remove(&traffic.replica);
        let rates = before.as_ref().map(|before| Rates::between(before, &traffic, now)).unwrap_or_default();
        let has_rates = before.is_some();
        if self.replicas.len() < REPLICAS {
            self.replicas.insert(traffic.replica.clone(), Replica { read: now, newest: traffic, rates });
        }
        if has_rates {
            if self.points.len() == POINTS {
                self.points.pop_front();
            }
            self.points.push_back(self.point());
        }
    }

    fn point(&self) -> Point {
        let mut buckets: Vec<Bucket> = Vec::new();
        for replica in self.replicas.values() {
            for (place, bucket) in replica.rates.buckets.iter().enumerate() {
                match buckets.get_mut(place) {
                    Some(sum) => sum.count += bucket.count,
                    None => buckets.push(bucket.clone()),
                }
            }
        }
        let all = self.replicas.values().map(|replica| &replica.rates);
        Point {
            requests: all.clone().map(|rates| rates.requests).sum(),
            errors: all.map(|rates| rates.errors).sum(),
            median: quantile(&buckets, 0.5),
            slowest: quantile(&buckets, 0.99),
        }
    }

    /// The points, oldest first.
    pub fn points(&self) -> impl ExactSizeIterator<Item = Point> + Clone + '_ {
        self.points.iter().copied()
    }

    /// The sum over replicas. `None`: no replica has answered.
    pub fn sum(&self) -> Option<Sum> {
        if self.replicas.is_empty() {
            return None;
        }
        let mut sum = Sum::default();
        for Replica { newest, .. } in self.replicas.values() {
            sum.replicas.push(newest.replica.clone());
            sum.in_flight += newest.requests_in_flight;
            sum.streams += newest.streams_in_flight;
            sum.upgrades += newest.upgrades_in_flight;
            sum.connections += newest.connections;
            sum.circuit_open |= newest.circuit_open;
            for requests in &newest.requests {
                *sum.codes.entry(requests.code).or_default() += requests.count;
            }
            for failures in &newest.failures {
                *sum.sides.entry(failures.side.clone()).or_default() += failures.count;
            }
            sum.failures.extend(newest.recent_failures.iter().cloned());
        }
        sum.failures.sort_by_key(|failure| std::cmp::Reverse(failure.time));
        // Equal failures in a row are shown once.
        sum.failures.dedup_by(|older, newer| {
            let is_same = is_same(older, newer);
            if is_same {
                newer.suppressed = newer.suppressed.saturating_add(older.suppressed).saturating_add(1);
            }
            is_same
        });
        sum.failures.truncate(FAILURES);
        Some(sum)
    }
}

/// Whether two failures are equal, apart from when they happened, how long they took, and how many
/// they stand for.
fn is_same(one: &RecentFailure, other: &RecentFailure) -> bool {
    let lasting = |failure: &RecentFailure| RecentFailure { time: 0, took_micros: 0, suppressed: 0, ..failure.clone() };
    lasting(one) == lasting(other)
}

// === impl Rates ===

impl Rates {
    /// The rates between two readings. Empty if the replica was restarted in between.
    fn between(before: &Replica, after: &Traffic, now: Instant) -> Self {
        let seconds = now.duration_since(before.read).as_secs_f64();
        if before.newest.since != after.since || seconds <= 0.0 {
            return Self::default();
        }
        let counts = |traffic: &Traffic, least: u16| -> u64 {
            traffic.requests.iter().filter(|one| one.code >= least).map(|one| one.count).sum()
        };
        let rate = |least| per_second(counts(after, least).saturating_sub(counts(&before.newest, least)), seconds);
        let old = before.newest.duration.buckets.iter().map(|bucket| bucket.count).chain(std::iter::repeat(0));
        let buckets = after.duration.buckets.iter().zip(old);
        let buckets = buckets.map(|(new, old)| Bucket { count: new.count.saturating_sub(old), ..new.clone() });
        Self { requests: rate(0), errors: rate(500), buckets: buckets.collect() }
    }
}

#[allow(clippy::cast_precision_loss, reason = "beyond 2^53 requests nobody counts them one by one")]
fn per_second(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds
}

/// A quantile in milliseconds, as of Prometheus' `histogram_quantile`: durations are spread evenly
/// within a bucket.
#[allow(clippy::cast_precision_loss, reason = "it is an estimate")]
fn quantile(buckets: &[Bucket], part: f64) -> Option<f64> {
    let all: u64 = buckets.iter().map(|bucket| bucket.count).sum();
    if all == 0 {
        return None;
    }
    let rank = part * all as f64;
    let (mut seen, mut least) = (0.0, 0.0);
    for Bucket { most_micros, count } in buckets {
        let Some(most) = most_micros.map(|micros| micros as f64 / 1000.0) else { return Some(least) };
        let count = *count as f64;
        if seen + count >= rank && count > 0.0 {
            return Some(least + (most - least) * (rank - seen) / count);
        }
        seen += count;
        least = most;
    }
    Some(least)
}

#[cfg(test)]
mod tests {
    use api::traffic::{Duration as Took, Requests};

    use super::*;

    const EACH: Duration = Duration::from_secs(5);

    fn bucket(most: Option<u64>, count: u64) -> Bucket {
        Bucket { most_micros: most.map(|millis| millis * 1000), count }
    }

    fn reading(replica: &str, since: i64, good: u64, bad: u64) -> Traffic {
        let requests = |code, count| Requests { method: "GET".into(), code, count };
        let duration =
            Took { sum_micros: 0, buckets: vec![bucket(Some(10), good), bucket(Some(100), bad), bucket(None, 0)] };
        Traffic {
            replica: replica.into(),
            since,
            requests: vec![requests(200, good), requests(503, bad)],
            duration,
            ..Traffic::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn rates_are_of_two_readings_of_the_same_replica() {
        let (mut history, start) = (History::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        history.add(reading("one", 1, 100, 0), at(0), EACH);
        assert_eq!((history.points().len(), history.sum().unwrap().codes[&200]), (0, 100));
        history.add(reading("other", 1, 7, 7), at(5), EACH);
        assert_eq!(history.points().len(), 0, "each counts its own");
        history.add(reading("one", 1, 190, 10), at(10), EACH);
        let point = history.points().next().unwrap();
        assert_eq!((point.requests, point.errors), (10.0, 1.0));
        // Half of 100 is within the first bucket of 90, 99 within the second of 10.
        let near = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 0.01;
        assert!(near(point.median, 10.0 * 50.0 / 90.0) && near(point.slowest, 10.0 + 90.0 * 9.0 / 10.0), "{point:?}");
        history.add(reading("other", 1, 17, 7), at(15), EACH);
        let point = history.points().last().unwrap();
        assert!(near(Some(point.requests), 11.0), "the sum over both");
        assert_eq!(history.sum().unwrap().replicas, ["one", "other"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_replica_that_began_anew_counts_from_nothing() {
        let (mut history, start) = (History::default(), Instant::now());
        history.add(reading("one", 1, 100, 0), start, EACH);
        history.add(reading("one", 2, 500, 0), start + Duration::from_secs(5), EACH);
        assert_eq!(history.points().next().unwrap(), Point::default());
        history.add(reading("other", 1, 5, 0), start + LATELY + Duration::from_secs(5), EACH);
        assert_eq!(history.sum().unwrap().replicas, ["other"], "one is gone");
    }

    #[tokio::test(start_paused = true)]
    async fn rare_looks_have_rates_and_two_pages_make_no_spikes() {
        let (mut history, start, each) = (History::default(), Instant::now(), Duration::from_mins(1));
        history.add(reading("one", 1, 0, 0), start, each);
        history.add(reading("one", 1, 120, 0), start + each, each);
        history.add(reading("one", 1, 130, 0), start + each + Duration::from_millis(3), each);
        history.add(reading("one", 1, 240, 0), start + 2 * each, each);
        let rates: Vec<_> = history.points().map(|point| point.requests).collect();
        assert_eq!(rates, [2.0, 2.0]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_failure_again_is_told_once() {
        let failed = |time, code, suppressed| RecentFailure { time, code, suppressed, ..RecentFailure::default() };
        let recent_failures = vec![failed(1, 503, 0), failed(2, 502, 0), failed(3, 503, 0), failed(4, 503, 5)];
        let mut history = History::default();
        history.add(Traffic { recent_failures, ..Traffic::default() }, Instant::now(), EACH);
        let told: Vec<_> = history.sum().unwrap().failures.iter().map(|one| (one.time, one.suppressed)).collect();
        assert_eq!(told, [(4, 6), (2, 0), (1, 0)]);
    }

    #[test]
    fn quantiles_beyond_all_bounds_are_the_last_bound() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[bucket(Some(10), 0), bucket(None, 5)], 0.5), Some(10.0));
        assert_eq!(quantile(&[bucket(Some(10), 4)], 0.5), Some(5.0));
    }
}
