//! Metrics of the current state, read at each scrape.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::links::Links;
use crate::streams::Streams;

/// The existing links and streams.
#[derive(Debug)]
pub struct Live {
    pub links: Arc<Links>,
    pub streams: Arc<Streams>,
}

#[derive(Debug, Clone, EncodeLabelSet)]
struct Direction {
    direction: &'static str,
}

/// Exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "metrics are floating-point numbers")]
fn bytes(count: u64) -> f64 {
    count as f64
}

// === impl Live ===

impl Collector for Live {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let found = self.links.summary();
        let mut gauge = |name: &str, help: &str, value: f64| {
            let descriptor = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(descriptor)
        };
        let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        gauge("tunnel_agent_links", "Usable links", number(found.links))?;
        gauge("tunnel_agent_links_wanted", "Links wanted", number(found.wanted))?;
        gauge("tunnel_agent_servers", "Tunnel-servers with a usable link", number(found.servers))?;
        if let Some(rtt) = found.slowest {
            gauge("tunnel_agent_link_rtt_seconds", "Round trip of the slowest link", rtt.as_secs_f64())?;
        }
        let budget = self.streams.budget();
        gauge("tunnel_agent_held_bytes", "Bytes held for slow readers", bytes(budget.held()))?;
        let (forth, back) = self.streams.bytes();
        let help = "Bytes passed, by direction";
        let mut family = encoder.encode_descriptor("tunnel_agent_bytes", help, None, MetricType::Counter)?;
        for (direction, bytes) in [("to-destination", forth), ("from-destination", back)] {
            ConstCounter::new(bytes).encode(family.encode_family(&Direction { direction })?)?;
        }
        let help = "Streams reset because too many bytes were held";
        let sheds = encoder.encode_descriptor("tunnel_agent_sheds", help, None, MetricType::Counter)?;
        ConstCounter::new(budget.sheds()).encode(sheds)
    }
}
