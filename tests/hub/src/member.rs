//! A member cluster: an API server, its controllers and scheduler, two nodes whose pods have no
//! real containers, and a kubelet for the streams into those pods.
//!
//! A pod's "container" is a directory of this machine: `exec` runs there, and `<container>.log` in
//! it is the container's log.

mod nodes;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use kit::lines;
use serde_json::{Value, json};

use self::nodes::LIMIT;
pub use self::nodes::Nodes;
use crate::control_plane::{ApiServer, Etcd, Launcher};
use crate::ports;
use crate::process::Process;
use crate::tools::Tool;

/// The ServiceAccount in the namespace `default` of the member whose token the gateway uses.
pub const GATEWAY_USER: &str = "gateway";

/// A running member.
#[derive(Debug)]
pub struct Member {
    /// Its API server.
    pub server: ApiServer,
    nodes: Option<Nodes>,
    programs: Vec<Process>,
    kubelet: SocketAddr,
    containers: PathBuf,
    audit_log: PathBuf,
    launcher: Launcher,
}

// === impl Member ===

impl Member {
    /// Starts it, without waiting.
    pub fn start(launcher: &Launcher, etcd: &Etcd) -> Result<Self> {
        // No --kubelet-certificate-authority: then any kubelet certificate is accepted.
        let (policy, audit_log) = (launcher.file("member-audit-policy.json"), launcher.file("member-audit.log"));
        std::fs::write(&policy, audit_policy().to_string())?;
        let flags = [
            format!("--audit-policy-file={}", policy.display()),
            format!("--audit-log-path={}", audit_log.display()),
            "--feature-gates=CBORServingAndStorage=true".to_owned(), // not yet on by default
        ];
        let server = ApiServer::start(launcher, etcd, "member", "10.97.0.0/16", &flags)?;
        let containers = launcher.file("containers");
        std::fs::create_dir_all(&containers)?;
        let kubelet = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));
        let (nodes, programs) = (None, Vec::new());
        Ok(Self { server, nodes, programs, kubelet, containers, audit_log, launcher: launcher.clone() })
    }

    /// Waits until it is ready, starts its other programs, and waits until its nodes are ready.
    pub fn wait_ready(&mut self) -> Result<()> {
        self.server.wait_ready()?;
        self.programs.push(self.start_kubelet()?);
        let nodes = self.nodes.insert(Nodes::start(&self.launcher, &self.server, self.kubelet.port())?);
        nodes.wait_ready(&self.server)
    }

    /// Runs a pod with one container named `main` and waits until it runs and its log contains
    /// `log`.
    pub fn run_pod(&self, namespace: &str, name: &str, log: &str) -> Result<()> {
        let directory = self.container(namespace, name);
        std::fs::create_dir_all(&directory)?;
        std::fs::write(directory.join("main.log"), log)?;
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": "none"}]},
        });
        self.server.apply(&[pod])?;
        self.server.wait_for(&format!("pod {name} -n {namespace}"), "Ready", LIMIT)
    }

    /// The directory that represents the pod's containers.
    pub fn container(&self, namespace: &str, pod: &str) -> PathBuf {
        self.containers.join(namespace).join(pod)
    }

    /// The listening address of the kubelet of all its nodes.
    pub fn kubelet(&self) -> SocketAddr {
        self.kubelet
    }

    /// Binds the ServiceAccount `default/<name>` to cluster-admin and returns a token for it.
    pub fn create_admin(&self, name: &str) -> Result<String> {
        let token = self.server.service_account_token("default", name)?;
        self.server.bind(name, "cluster-admin", ("default", name))?;
        Ok(token)
    }

    /// Whether a request whose URL contains `marker` came from the gateway's users, or from a user
    /// that they impersonated.
    pub fn has_seen(&self, marker: &str) -> Result<bool> {
        Ok(lines::has(&std::fs::read_to_string(&self.audit_log)?, marker))
    }

    /// The audit log's entries of finished requests whose URL contains `marker`.
    pub fn seen(&self, marker: &str) -> Result<Vec<Value>> {
        let log = std::fs::read_to_string(&self.audit_log)?;
        let lines = lines::with(&log, &[marker, r#""stage":"ResponseComplete""#]);
        // The last line may be incomplete.
        Ok(lines.into_iter().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// The number of long-running requests (watches, followed logs) whose URL contains `marker` and
    /// which have begun and not ended.
    pub fn open_streams(&self, marker: &str) -> Result<usize> {
        let log = std::fs::read_to_string(&self.audit_log)?;
        let theirs = lines::with(&log, &[marker]);
        let count = |stage: &str| theirs.iter().filter(|line| line.contains(stage)).count();
        let (started, complete) = (count(r#""stage":"ResponseStarted""#), count(r#""stage":"ResponseComplete""#));
        started.checked_sub(complete).context("more ended than began")
    }

    /// Signals everything to end.
    pub fn release(&mut self) {
        self.programs.iter_mut().for_each(Process::release);
        self.nodes.iter_mut().for_each(Nodes::release);
        self.server.release();
    }

    fn start_kubelet(&self) -> Result<Process> {
        let args = [
            format!("--listen={}", self.kubelet),
            format!("--tls-cert-file={}", self.launcher.file("member.crt").display()),
            format!("--tls-private-key-file={}", self.launcher.file("member.key").display()),
            format!("--root={}", self.containers.display()),
        ];
        self.launcher.start("member-kubelet", Tool::Kubelet, args)
    }
}

/// One line for each request, with its URL and user but without its body. The control plane's own
/// users are left out: they make too many requests.
fn audit_policy() -> Value {
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "None", "users": ["member-admin", "system:apiserver"]},
            {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
            {"level": "Metadata"},
        ],
    })
}
