//! The gateways' Service: new connections go to those that are ready, as endpoints and their probes
//! make it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use http::StatusCode;
use hub_tests::gate::Gate;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{interval, timeout};

use crate::caller::Caller;

/// Interval of probes. A gateway that ends fails them `--shutdown-delay-duration` before.
const PROBE_EVERY: Duration = Duration::from_millis(200);
/// Limit for an answer to a probe: a frozen gateway gives none.
const ANSWER: Duration = Duration::from_secs(2);

pub(super) struct Service {
    gate: Arc<Gate>,
    probing: JoinHandle<()>,
}

// === impl Service ===

impl Service {
    pub(super) fn start(runtime: &Handle, gateways: Vec<SocketAddr>) -> Result<Self> {
        let gate = Arc::new(Gate::start_among(gateways.clone())?);
        let probing = runtime.spawn(probe(Arc::clone(&gate), gateways));
        Ok(Self { gate, probing })
    }

    pub(super) fn gate(&self) -> &Gate {
        &self.gate
    }

    pub(super) fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.gate.port()))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.probing.abort();
    }
}

async fn probe(gate: Arc<Gate>, gateways: Vec<SocketAddr>) {
    let probes: Vec<Caller> = gateways.iter().map(|address| Caller::stranger(*address)).collect();
    let mut ticks = interval(PROBE_EVERY);
    loop {
        ticks.tick().await;
        let mut ready = Vec::new();
        for (address, probe) in gateways.iter().zip(&probes) {
            let answer = timeout(ANSWER, probe.get("/readyz")).await;
            if matches!(answer, Ok(Ok(answer)) if answer.status == StatusCode::OK) {
                ready.push(*address);
            }
        }
        gate.set_targets(ready);
    }
}
