//! Bytes held for clients, read at each scrape.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::holding::Budget;

#[derive(Debug)]
pub struct HeldBytes(pub Budget);

// === impl HeldBytes ===

impl Collector for HeldBytes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Self(budget) = self;
        for (name, help, bytes) in [
            (
                "cluster_gateway_held_bytes",
                "Bytes held for clients: heads, unread bodies, unsent answers; also unfinished heads of members, and \
                 what streams of the tunnel hold unread or unsent",
                budget.held(),
            ),
            ("cluster_gateway_held_bytes_limit", "Limit on the bytes held, --max-held-bytes", budget.limit()),
        ] {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            ConstGauge::new(bytes).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
        }
        for (name, help, ended) in [
            (
                "cluster_gateway_sheds",
                "Requests and connections ended because too many bytes were held and their owner held the most",
                budget.sheds(),
            ),
            (
                "cluster_gateway_client_connections_shed",
                "Client connections closed because too many were open and their user had the most",
                budget.thinned(),
            ),
        ] {
            ConstCounter::new(ended).encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)?;
        }
        Ok(())
    }
}
