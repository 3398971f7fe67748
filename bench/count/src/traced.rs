//! A collector for a gateway that traces every request.

use anyhow::Result;
use kit::collector::Collector;
use tokio::runtime::{Builder, Runtime};

/// Sampling rate, in every million requests.
const ALL: u32 = 1_000_000;

/// A collector that runs until it is dropped.
pub struct Traces {
    collector: Collector,
    _runtime: Runtime,
}

// === impl Traces ===

impl Traces {
    pub fn start() -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let collector = runtime.block_on(Collector::start());
        Ok(Self { collector, _runtime: runtime })
    }

    /// The gateway's for it.
    pub fn arguments(&self) -> Vec<String> {
        vec![
            format!("--tracing-endpoint={}", self.collector.address()),
            format!("--tracing-sampling-rate-per-million={ALL}"),
        ]
    }
}
