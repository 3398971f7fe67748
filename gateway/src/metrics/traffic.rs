//! The counts of one cluster, for `clustergateways/traffic`.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::sync::atomic::Ordering;

use api::side::Side;
use api::traffic::{self, Bucket, Failures, Requests, Traffic};

use super::ledger::Ledger;
use super::recent::millis;
use super::{ClusterMetrics, micros};

/// Identifies the replica: containers have their pod's name.
static REPLICA: LazyLock<String> = LazyLock::new(|| {
    let name = std::env::var("HOSTNAME").unwrap_or_default();
    if name.is_empty() { format!("process-{}", std::process::id()) } else { name }
});

// === impl ClusterMetrics ===

impl ClusterMetrics {
    pub fn traffic(&self) -> Traffic {
        let mut counts = BTreeMap::new();
        for ((verb, code), counter) in self.by_outcome.iter().flat_map(Ledger::iter) {
            *counts.entry((verb.method(), code)).or_default() += counter.get();
        }
        let requests = counts.into_iter();
        let requests = requests.map(|((method, code), count)| Requests { method: method.to_owned(), code, count });
        let sides = Side::ALL.into_iter().map(|side| Failures {
            side: side.as_str().to_owned(),
            count: self.by_side[side as usize].load(Ordering::Relaxed),
        });
        let read = self.duration.read();
        let buckets = read.buckets.into_iter().map(|(bound, count)| Bucket { most_micros: bound.map(micros), count });
        Traffic {
            replica: REPLICA.clone(),
            since: millis(self.since),
            requests_in_flight: self.in_flight.get(),
            streams_in_flight: self.streams.get(),
            upgrades_in_flight: self.upgrades.get(),
            connections: self.connections.get(),
            circuit_open: self.circuit.get() > 0,
            requests: requests.collect(),
            failures: sides.filter(|side| side.count > 0).collect(),
            duration: traffic::Duration { sum_micros: micros(read.sum), buckets: buckets.collect() },
            recent_failures: self.recent.read(),
            tunnel_open: self.tunnel_open.read(),
        }
    }
}
