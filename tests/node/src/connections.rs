//! Attempts to connect from inside the networks of pods.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use hub_tests::wait;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::image::PAUSE;
use crate::node::LIMIT;

/// Time-out of a connection that gets no answer, in seconds.
const SILENCE: &str = "3";

/// A running pod, from whose network connections can be tried.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// Id of one of its processes.
    process: u32,
}

// === impl Caller ===

impl Caller {
    /// Starts a pod that does nothing.
    pub fn create(cluster: &Cluster, namespace: &str, name: &str, node: &str, labels: &Value) -> Result<Self> {
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": namespace, "name": name, "labels": labels},
            "spec": {"nodeName": node, "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": false,
                "containers": [{"name": "pause", "image": PAUSE}]}});
        cluster.server.apply(&[pod])?;
        wait::until(name, LIMIT, || Self::of(&cluster.get(&format!("pod -n {namespace} {name}"))?))
    }

    /// The caller of a pod that must be running.
    pub fn of(pod: &Value) -> Result<Self> {
        let id = pod["status"]["containerStatuses"][0]["containerID"].as_str().context("not started")?;
        let id = id.trim_start_matches("containerd://");
        for entry in fs::read_dir("/proc")?.flatten() {
            let groups = fs::read_to_string(entry.path().join("cgroup")).unwrap_or_default();
            if let Ok(process) = entry.file_name().to_string_lossy().parse()
                && groups.contains(id)
            {
                return Ok(Self { process });
            }
        }
        bail!("no process of container {id}")
    }

    /// Id of the process, in this process's PID namespace.
    pub fn process(self) -> u32 {
        self.process
    }

    /// Content of a file as the pod's programs see it, mounts included.
    pub fn file(self, path: &str) -> Result<Vec<u8>> {
        let file = format!("/proc/{}/root{path}", self.process);
        fs::read(&file).with_context(|| format!("{path} of process {}", self.process))
    }

    /// Whether `address` accepts connections from this pod.
    pub fn reaches(self, address: SocketAddr) -> Result<bool> {
        let connect = format!("exec 3<>/dev/tcp/{}/{}", address.ip(), address.port());
        let process = self.process.to_string();
        let words = ["-t", &process, "-n", "timeout", SILENCE, "bash", "-c", &connect];
        let output = Command::new("nsenter").args(words).output()?;
        match output.status.code() {
            Some(0) => Ok(true),
            Some(1 | 124) => Ok(false), // refused; nobody answered
            _ => bail!("{connect}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr)),
        }
    }
}
