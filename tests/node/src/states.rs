//! kube-state-metrics beside a cluster.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use hub_tests::process::Process;
use hub_tests::tools::{self, Tool};
use hub_tests::{http, ports, wait};

use crate::cluster::Cluster;

/// What it tells of the containers of each pod.
const READY: &str = "kube_pod_container_status_ready";
const LIMIT: Duration = Duration::from_mins(1);

/// Ends when dropped.
pub struct States {
    address: SocketAddr,
    _process: Process,
}

// === impl States ===

impl States {
    /// Starts it, and waits until it tells of containers of `namespace`.
    pub fn start(directory: &Path, cluster: &Cluster, namespace: &str) -> Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));
        let args = [
            format!("--kubeconfig={}", cluster.kubectl().kubeconfig.display()),
            format!("--namespaces={namespace}"),
            format!("--metric-allowlist={READY}"),
            "--resources=pods".to_owned(),
            format!("--host={}", address.ip()),
            format!("--port={}", address.port()),
            format!("--telemetry-host={}", address.ip()),
            format!("--telemetry-port={}", ports::free()?),
        ];
        let name = format!("states-{}", cluster.plan.name);
        let process = Process::start(&name, &tools::provide(Tool::StateMetrics)?, args, directory)?;
        let states = Self { address, _process: process };
        wait::until("the states of containers", LIMIT, || {
            let told = states.tell()?;
            ensure!(told.contains(&format!("{READY}{{")), "{told}");
            Ok(())
        })?;
        Ok(states)
    }

    /// Its metrics.
    pub fn tell(&self) -> Result<String> {
        http::plain(self.address, "/metrics")
    }
}

/// How many containers are not ready, of what is told.
pub fn unready(told: &str) -> usize {
    told.lines().filter(|line| line.starts_with(READY) && line.ends_with(" 0")).count()
}
