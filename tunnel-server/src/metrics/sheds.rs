//! How often a budget had to be defended, read off the budget itself.

use std::fmt;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use tunnel::Budget;

/// See the module's text.
#[derive(Debug)]
pub struct ShedStreams(pub Budget);

// === impl ShedStreams ===

impl EncodeMetric for ShedStreams {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_counter::<NoLabelSet, _, u64>(&self.0.sheds(), None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}
