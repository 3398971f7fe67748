//! Open streams and the bytes of all streams by cluster, and the streams reset to free memory, all
//! computed at each scrape.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use foldhash::quality::RandomState;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use tunnel::{Budget, Gauge};

use super::ClusterLabels;

/// The streams of each cluster.
#[derive(Debug, Default)]
pub struct Streams(Mutex<BTreeMap<Arc<str>, OfCluster>>);

/// The streams of one cluster.
#[derive(Debug, Default)]
struct OfCluster {
    next: u64,
    open: HashMap<u64, Arc<Gauge>, RandomState>,
    /// Bytes of streams that have ended.
    ended: Moved,
}

/// Bytes moved.
#[derive(Debug, Default, Clone, Copy)]
struct Moved {
    forth: u64,
    back: u64,
}

/// Counts one stream as open until dropped.
#[derive(Debug)]
pub struct Open {
    streams: Arc<Streams>,
    cluster: Arc<str>,
    number: u64,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct DirectionLabels {
    cluster: Arc<str>,
    direction: &'static str,
}

/// The values of one cluster at a scrape.
struct ClusterSample {
    cluster: Arc<str>,
    open: usize,
    moved: Moved,
    held: u64,
}

/// Number of streams that the budget has reset, read from the budget itself.
#[derive(Debug)]
pub struct ShedStreams(pub Budget);

// === impl Streams ===

impl Streams {
    pub fn open(self: &Arc<Self>, cluster: Arc<str>, gauge: Arc<Gauge>) -> Open {
        let mut clusters = self.0.lock();
        let of_cluster = clusters.entry(Arc::clone(&cluster)).or_default();
        let number = of_cluster.next;
        of_cluster.next += 1;
        of_cluster.open.insert(number, gauge);
        Open { streams: Arc::clone(self), cluster, number }
    }

    fn samples(&self) -> Vec<ClusterSample> {
        self.0.lock().iter().map(|(cluster, streams)| streams.sample(Arc::clone(cluster))).collect()
    }
}

impl Collector for Streams {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let samples = self.samples();
        let mut open = encoder.encode_descriptor(
            "tunnel_server_streams_open",
            "Streams that are open",
            None,
            MetricType::Gauge,
        )?;
        for ClusterSample { cluster, open: count, .. } in &samples {
            let labels = ClusterLabels { cluster: Arc::clone(cluster) };
            open.encode_family(&labels)?.encode_gauge(&i64::try_from(*count).unwrap_or(i64::MAX))?;
        }
        let mut held = encoder.encode_descriptor(
            "tunnel_server_held",
            "Bytes taken from one side of the open streams and not yet passed to the other",
            Some(&Unit::Bytes),
            MetricType::Gauge,
        )?;
        for ClusterSample { cluster, held: bytes, .. } in &samples {
            let labels = ClusterLabels { cluster: Arc::clone(cluster) };
            held.encode_family(&labels)?.encode_gauge(&i64::try_from(*bytes).unwrap_or(i64::MAX))?;
        }
        let mut moved = encoder.encode_descriptor(
            "tunnel_server_relayed",
            "Bytes passed between frontends and members, by direction",
            Some(&Unit::Bytes),
            MetricType::Counter,
        )?;
        for ClusterSample { cluster, moved: Moved { forth, back }, .. } in &samples {
            for (direction, bytes) in [("to_member", forth), ("from_member", back)] {
                let labels = DirectionLabels { cluster: Arc::clone(cluster), direction };
                moved.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(bytes, None)?;
            }
        }
        Ok(())
    }
}

// === impl OfCluster ===

impl OfCluster {
    fn sample(&self, cluster: Arc<str>) -> ClusterSample {
        let mut sample = ClusterSample { cluster, open: self.open.len(), moved: self.ended, held: 0 };
        for gauge in self.open.values() {
            sample.moved.add(gauge);
            sample.held += gauge.held();
        }
        sample
    }
}

// === impl Moved ===

impl Moved {
    fn add(&mut self, gauge: &Gauge) {
        self.forth += gauge.forth.load(Ordering::Relaxed);
        self.back += gauge.back.load(Ordering::Relaxed);
    }
}

// === impl Open ===

impl Drop for Open {
    fn drop(&mut self) {
        let mut clusters = self.streams.0.lock();
        if let Some(of_cluster) = clusters.get_mut(&self.cluster)
            && let Some(gauge) = of_cluster.open.remove(&self.number)
        {
            of_cluster.ended.add(&gauge);
            drop(clusters);
            // Not under the lock: the registry's bookkeeping may run when the gauge is dropped.
            drop(gauge);
        }
    }
}

// === impl ShedStreams ===

impl EncodeMetric for ShedStreams {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_counter::<NoLabelSet, _, u64>(&self.0.sheds(), None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}
