//! What has pods run on an API server: its controllers, its scheduler, and two nodes without
//! anything behind them.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::control_plane::{ApiServer, Launcher, start_controller_manager, start_kwok, start_scheduler};
use crate::process::Process;
use crate::wait;

const KWOK: &str = include_str!("kwok.yaml");
const NODES: &str = include_str!("nodes.yaml");

const CONTROLLERS: [&str; 10] = [
    "namespace-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",    // puts tokens into Secrets
    "clusterrole-aggregation-controller", // fills the roles view, edit and admin
    "node-lifecycle-controller",          // takes the taint off new nodes
    "deployment-controller",
    "replicaset-controller",
    "endpointslice-controller",
    "root-ca-certificate-publisher-controller", // pods mount what it publishes
    "garbage-collector-controller",
];

/// For pods and nodes to come up; a second is usual.
pub const LIMIT: Duration = Duration::from_mins(1);

/// The programs. Ended on drop.
#[derive(Debug)]
pub struct Nodes {
    processes: Vec<Process>,
}

// === impl Nodes ===

impl Nodes {
    /// Starts them beside `server`, which is ready. Its nodes say that their kubelet is at
    /// `kubelet`, a port.
    pub fn start(launcher: &Launcher, server: &ApiServer, kubelet: u16) -> Result<Self> {
        let config = launcher.file("kwok.yaml");
        std::fs::write(&config, KWOK)?;
        let processes = vec![
            start_kwok(launcher, server, &config, kubelet)?,
            start_controller_manager(launcher, server, &CONTROLLERS)?,
            start_scheduler(launcher, server)?,
        ];
        server.create(&serde_saphyr::from_multiple::<Value>(NODES)?)?;
        Ok(Self { processes })
    }

    /// Waits until pods may run.
    pub fn wait_ready(&self, server: &ApiServer) -> Result<()> {
        server.wait_for("nodes", "Ready", LIMIT).with_context(|| self.logs())?;
        wait::until_true("the default ServiceAccount", LIMIT, || Ok(!server.read("serviceaccount default")?.is_null()))
    }

    /// Asks everything to end.
    pub fn release(&mut self) {
        self.processes.iter_mut().for_each(Process::release);
    }

    fn logs(&self) -> String {
        self.processes.iter().map(Process::log_tail).collect::<Vec<_>>().join("\n")
    }
}
