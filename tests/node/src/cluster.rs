//! A cluster: API server, controllers, scheduler, DNS, and nodes.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::control_plane::{ApiServer, Etcd, Launcher, start_controller_manager, start_scheduler};
use hub_tests::kubeconfig::{Credential, Kubeconfig};
use hub_tests::kubectl::Kubectl;
use hub_tests::process::Process;
use hub_tests::tools::Tool;
use hub_tests::wait;
use kit::pki::Leaf;
use serde_json::Value;

use crate::family::Family;
use crate::node::{Membership, Node};

/// Time for nodes to become ready on a busy machine.
const NODES_READY: Duration = Duration::from_mins(5);

/// All controllers but those of what these tests do not have: volumes that are attached or claimed,
/// devices, sets, cron jobs, quotas. Each has clients and an account of its own, and some look
/// around several times a second.
const CONTROLLERS: [&str; 16] = [
    "*",
    "-persistentvolume-attach-detach-controller",
    "-persistentvolume-binder-controller",
    "-persistentvolume-expander-controller",
    "-persistentvolume-protection-controller",
    "-persistentvolumeclaim-protection-controller",
    "-volumeattributesclass-protection-controller",
    "-ephemeral-volume-controller",
    "-resourceclaim-controller",
    "-replicationcontroller-controller",
    "-statefulset-controller",
    "-daemonset-controller",
    "-cronjob-controller",
    "-resourcequota-controller",
    "-ttl-controller",
    "-horizontal-pod-autoscaler-controller", // a test starts it for itself, faster
];

/// The differences between clusters of a testbed.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub name: &'static str,
    /// Range of Service addresses, and the first one, which is the API server's.
    pub services: (&'static str, &'static str),
    /// Numbers of its nodes; its DNS server is on the first.
    pub nodes: &'static [u8],
}

/// A cluster that is up or is being started.
pub struct Cluster {
    pub plan: Plan,
    pub server: ApiServer,
    pub nodes: Vec<Node>,
    family: Family,
    launcher: Launcher,
    managers: Vec<Process>,
}

// === impl Cluster ===

impl Cluster {
    /// Starts its API server, without waiting, and prepares the mounts, networks and control groups
    /// of its nodes.
    pub fn start(
        launcher: &Launcher,
        etcd: &Etcd,
        (plan, family): (Plan, Family),
        group: &str,
        more: &[String],
    ) -> Result<Self> {
        let (services, kubernetes) = plan.services;
        let prepare = |&number: &u8| Node::prepare(launcher, family, number, services, group);
        let nodes = plan.nodes.iter().map(prepare).collect::<Result<Vec<_>>>()?;
        let address = family.node(1).to_string();
        let mut flags = vec![
            format!("--bind-address={}", if family == Family::V6 { "::" } else { "0.0.0.0" }),
            format!("--advertise-address={address}"),
            "--endpoint-reconciler-type=lease".to_owned(),
            "--authorization-mode=Node".to_owned(), // and RBAC
            "--enable-admission-plugins=NodeRestriction".to_owned(),
            "--kubelet-preferred-address-types=InternalIP".to_owned(),
        ];
        flags.extend_from_slice(more);
        let server = ApiServer::start_for(launcher, etcd, plan.name, services, &[&address, kubernetes], &flags)?;
        Ok(Self { plan, server, nodes, family, launcher: launcher.clone(), managers: Vec::new() })
    }

    /// Address by which nodes, pods and other clusters reach its API server.
    pub fn url(&self) -> String {
        format!("https://{}:{}", self.family.host(1), self.server.address().port())
    }

    /// kubectl as an administrator.
    pub fn kubectl(&self) -> Kubectl {
        self.server.kubectl()
    }

    /// Waits for the API server, starts the rest, and puts `images` on all nodes at the same time.
    pub fn complete(&mut self, images: &[PathBuf]) -> Result<()> {
        self.nodes.iter_mut().try_for_each(Node::start_containers)?;
        self.server.wait_ready()?;
        self.managers.push(start_controller_manager(&self.launcher, &self.server, &CONTROLLERS)?);
        self.managers.push(start_scheduler(&self.launcher, &self.server)?);
        let dns = self.family.node(self.plan.nodes[0]).to_string();
        self.managers.push(self.start_dns()?);
        let membership = &Membership {
            launcher: &self.launcher,
            server: self.url(),
            authority: self.server.authority(),
            authority_file: self.server.authority_file().to_path_buf(),
            dns,
        };
        thread::scope(|scope| {
            let mut joining = Vec::new();
            for node in &mut self.nodes {
                joining.push(scope.spawn(move || {
                    node.import(images)?;
                    node.join(membership)
                }));
            }
            joining.into_iter().try_for_each(|node| node.join().expect("no panic"))
        })
    }

    /// Waits until all nodes are ready.
    pub fn wait_ready(&self) -> Result<()> {
        let ready = || -> Result<()> {
            let nodes = self.get("nodes")?;
            let all = nodes["items"].as_array().into_iter().flatten();
            let conditions = all.flat_map(|node| node["status"]["conditions"].as_array().into_iter().flatten());
            let ready = conditions.filter(|one| one["type"] == "Ready" && one["status"] == "True").count();
            ensure!(ready == self.nodes.len(), "{ready} are");
            Ok(())
        };
        wait::until(&format!("the nodes of {}", self.plan.name), NODES_READY, ready).with_context(|| self.tails())
    }

    /// Objects, parsed: `what` is, for example, `pods -n default`.
    pub fn get(&self, what: &str) -> Result<Value> {
        self.server.field(what, "")
    }

    /// Starts a program on each node that enforces the cluster's `NetworkPolicies`, until dropped.
    pub fn enforce_policies(&self) -> Result<Vec<Process>> {
        let kubeconfig = self.administrator("policies")?;
        let kubeconfig = kubeconfig.to_string_lossy();
        let start = |node: &Node| {
            let args = [("kubeconfig", &*kubeconfig), ("node", &node.name()), ("services", self.plan.services.0)];
            let args = args.map(|(name, value)| format!("-{name}={value}")).to_vec();
            let process = node.start("policies", self.launcher.tools.path(Tool::Policies), args)?;
            let placed = || node.ok("iptables -w -S KUBE-ROUTER-FORWARD");
            wait::until("rules of policies", NODES_READY, placed).with_context(|| process.log_tail())?;
            Ok(process)
        };
        self.nodes.iter().map(start).collect()
    }

    /// A kubeconfig with all rights in the cluster, usable from its nodes.
    fn administrator(&self, name: &str) -> Result<PathBuf> {
        let name = format!("{}-{name}", self.plan.name);
        let credential = Leaf::client(&name).group("system:masters");
        let files = self.server.authority().issue(&credential).write_to(&self.launcher.directory, &name)?;
        let kubeconfig = Kubeconfig {
            server: self.url(),
            authority: self.server.authority_file().to_path_buf(),
            credential: Credential::Certificate(files),
        };
        kubeconfig.write(self.launcher.file(&format!("{name}.kubeconfig")))
    }

    fn start_dns(&self) -> Result<Process> {
        let name = format!("{}-dns", self.plan.name);
        let kubeconfig = self.administrator("dns")?;
        let file = self.launcher.file(&format!("{name}.conf"));
        let text = format!(
            ".:53 {{\n errors\n kubernetes cluster.local in-addr.arpa ip6.arpa {{\n  kubeconfig {}\n  ttl 5\n }}\n}}\n",
            kubeconfig.display()
        );
        std::fs::write(&file, text)?;
        let args = vec!["-conf".to_owned(), file.display().to_string()];
        self.nodes[0].start(&name, self.launcher.tools.path(Tool::CoreDns), args)
    }

    fn tails(&self) -> String {
        self.nodes.iter().map(Node::tails).collect::<Vec<_>>().join("\n")
    }

    /// Asks all its programs to end.
    pub fn release(&mut self) {
        self.nodes.iter_mut().for_each(Node::release);
        self.managers.iter_mut().for_each(Process::release);
        self.server.release();
    }
}
