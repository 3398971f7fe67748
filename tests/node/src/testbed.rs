//! The whole testbed: a hub and a member of two nodes each, and another member while a test needs
//! it.

use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context as _, Result, anyhow};
use hub_tests::audit::Audit;
use hub_tests::control_plane::{Etcd, Launcher, start_autoscaler};
use hub_tests::hub::{FRONT_PROXY, front_proxy_flags};
use hub_tests::kubeconfig::{Credential, Kubeconfig};
use hub_tests::process::Process;
use hub_tests::scratch::Scratch;
use hub_tests::tools::{Tool, Tools, provide};
use kit::pki::{Authority, Leaf};
use serde_json::json;

use crate::cloud;
use crate::cluster::{Cluster, Plan};
use crate::family::Family;
use crate::image;
use crate::namespaces::{group, inside};
use crate::programs::CLI;

const TOOLS: [Tool; 10] = [
    Tool::Etcd,
    Tool::ApiServer,
    Tool::ControllerManager,
    Tool::Scheduler,
    Tool::Kubectl,
    Tool::NodeKubelet,
    Tool::KubeProxy,
    Tool::CoreDns,
    Tool::Policies,
    Tool::Pause,
];

/// Namespace in which `kubectl clusters` installs agents.
const CLI_NAMESPACE: &str = "cluster-gateway";

/// Nodes of the hub, of the member, and of another member.
const NODES: [&[u8]; 3] = [&[1, 2], &[3, 4], &[5]];
/// Service addresses of the other member.
const OTHERS: (&str, &str) = ("10.98.0.0/16", "10.98.0.1");

/// The hub and the member. Their names for an operator are set by [`Testbed::kubeconfig`].
fn plans(family: Family) -> [Plan; 2] {
    let (hub, member) = match family {
        Family::V4 => (("10.96.0.0/16", "10.96.0.1"), ("10.97.0.0/16", "10.97.0.1")),
        Family::V6 => (("fd00:96::/112", "fd00:96::1"), ("fd00:97::/112", "fd00:97::1")),
    };
    let [of_hub, of_member, _] = NODES;
    [Plan { name: "hub", services: hub, nodes: of_hub }, Plan { name: "member", services: member, nodes: of_member }]
}

/// Two clusters that are up. Fields are dropped in this order.
pub struct Testbed {
    pub hub: Cluster,
    pub member: Cluster,
    /// Log of the requests that accounts send to the hub.
    pub audit: Audit,
    launcher: Launcher,
    etcd: Etcd,
    /// The image that does nothing.
    pause: PathBuf,
    scratch: Scratch,
}

/// Builds missing tools, which needs a network.
pub fn tools() -> Result<Tools> {
    provide(Tool::Helm)?;
    provide(Tool::Prometheus)?;
    provide(Tool::Promtool)?;
    provide(Tool::StateMetrics)?;
    Tools::only(&TOOLS)
}

// === impl Testbed ===

impl Testbed {
    /// Starts everything and waits for it. Works only inside namespaces of its own.
    pub fn start(family: Family) -> Result<Self> {
        let run = inside().context("not in namespaces of its own")?;
        let scratch = Scratch::create_called(&group(&run))?;
        let launcher = Launcher { tools: tools()?, directory: scratch.path().to_path_buf() };
        let directory = launcher.directory.clone();
        let pause = image::pause(&directory, launcher.tools.path(Tool::Pause))?;
        let images = thread::spawn(move || image::programs(&directory));
        let etcd = Etcd::start(&launcher)?;
        let front_proxy = Authority::new("front-proxy-ca");
        let identity = front_proxy.issue(&Leaf::client(FRONT_PROXY));
        let (audit, audited) = Audit::prepare(&launcher, "hub")?;
        let flags = [front_proxy_flags(&launcher, &front_proxy, &identity)?, audited.into()].concat();
        let [hub, member] = plans(family);
        let mut hub = Cluster::start(&launcher, &etcd, (hub, family), &group(&run), &flags)?;
        let mut member = Cluster::start(&launcher, &etcd, (member, family), &group(&run), &[])?;
        let images = images.join().map_err(|_| anyhow!("no images"))??;
        let of = |member: bool| -> Vec<PathBuf> {
            let belongs = |program: &str| (program == "tunnel-agent") == member;
            let programs = images.iter().filter(|(program, _)| belongs(program)).map(|(_, file)| file.clone());
            programs.chain([pause.clone()]).collect()
        };
        thread::scope(|scope| {
            let of_member = scope.spawn(|| member.complete(&of(true)).and_then(|()| member.wait_ready()));
            hub.complete(&of(false))?;
            hub.wait_ready()?;
            of_member.join().expect("no panic")
        })?;
        cloud::start(hub.kubectl(), family.node(1))?;
        let testbed = Self { hub, member, audit, launcher, etcd, pause, scratch };
        testbed.tool(CLI, &std::env::current_exe()?)?;
        testbed.tool("kubectl", testbed.launcher.tools.path(Tool::Kubectl))?;
        testbed.provide_helm()?;
        Ok(testbed)
    }

    /// Puts helm into the operator's `PATH`.
    pub fn provide_helm(&self) -> Result<()> {
        self.tool("helm", &provide(Tool::Helm)?)
    }

    /// One more cluster, which pods of the hub can dial. It has one node, and ends when dropped:
    /// one at a time.
    pub fn another(&self, name: &'static str) -> Result<Cluster> {
        let run = inside().context("not in namespaces of its own")?;
        let plan = Plan { name, services: OTHERS, nodes: NODES[2] };
        let mut cluster = Cluster::start(&self.launcher, &self.etcd, (plan, Family::V4), &group(&run), &[])?;
        cluster.complete(std::slice::from_ref(&self.pause))?;
        cluster.wait_ready()?;
        Ok(cluster)
    }

    /// Starts the controller that sets the hub's number of pods by their use, every second.
    pub fn start_autoscaler(&self) -> Result<Process> {
        start_autoscaler(&self.launcher, &self.hub.server)
    }

    /// Directory of the run's files.
    pub fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// Directory of the operator's tools, in `PATH`.
    pub fn tools(&self) -> PathBuf {
        self.directory().join("bin")
    }

    fn tool(&self, name: &str, program: &Path) -> Result<()> {
        std::fs::create_dir_all(self.tools())?;
        Ok(std::os::unix::fs::symlink(program, self.tools().join(name))?)
    }

    /// Writes an operator's kubeconfig: the hub and clusters, by name. The first is the current
    /// context.
    pub fn kubeconfig(&self, path: &Path, contexts: &[(&str, &Cluster)]) -> Result<()> {
        let (mut clusters, mut users, mut entries) = (Vec::new(), Vec::new(), Vec::new());
        for (name, cluster) in contexts {
            let admin =
                cluster.server.admin().write_to(self.directory(), &format!("{}-operator", cluster.plan.name))?;
            let authority = cluster.server.authority_file();
            clusters.push(json!({"name": name,
                "cluster": {"server": cluster.url(), "certificate-authority": authority}}));
            let user = json!({"client-certificate": admin.certificate, "client-key": admin.key});
            users.push(json!({"name": name, "user": user}));
            entries.push(json!({"name": name, "context": {"cluster": name, "user": name}}));
        }
        let current = contexts.first().map(|(name, _)| *name);
        let file = json!({"apiVersion": "v1", "kind": "Config", "clusters": clusters, "users": users,
            "contexts": entries, "current-context": current});
        Ok(std::fs::write(path, file.to_string())?)
    }

    /// Writes the kubeconfig of a user of whom the hub knows only the name.
    pub fn kubeconfig_of(&self, path: &Path, name: &str) -> Result<()> {
        let server = &self.hub.server;
        let credential =
            Credential::Certificate(server.authority().issue(&Leaf::client(name)).write_to(self.directory(), name)?);
        let authority = server.authority_file().to_path_buf();
        Kubeconfig { server: self.hub.url(), authority, credential }.write(path).map(drop)
    }

    /// Blocks, or unblocks, connections from the hub's pods to the member's API server, as if it
    /// were behind NAT.
    pub fn hide_member(&self, hidden: bool) -> Result<()> {
        let (action, port) = (if hidden { "-I" } else { "-D" }, self.member.server.address().port());
        for number in NODES[0] {
            let (first, _) = Family::V4.pods(*number);
            let rule = format!("INPUT -s {first}/24 -p tcp --dport {port} -j REJECT --reject-with tcp-reset");
            self.hub.nodes[0].ok(&format!("iptables -w {action} {rule}"))?;
        }
        Ok(())
    }

    /// Writes the logs of pods to files, since these go with their pods.
    pub fn save_logs(&self) {
        for (cluster, namespace) in
            [(&self.hub, "vela-system"), (&self.member, "default"), (&self.member, CLI_NAMESPACE)]
        {
            let kubectl = cluster.kubectl();
            let pods = kubectl.ok(&format!("get pods -n {namespace} -o name")).unwrap_or_default();
            for pod in pods.lines() {
                let log = kubectl.ok(&format!("logs -n {namespace} {pod}")).unwrap_or_default();
                drop(std::fs::write(self.directory().join(pod.replace('/', "-") + ".log"), log));
            }
        }
    }

    /// Keeps the directory with the logs.
    pub fn keep(&mut self) -> PathBuf {
        self.scratch.keep();
        self.scratch.path().to_path_buf()
    }
}

impl Drop for Testbed {
    /// Asks both clusters to end at the same time.
    fn drop(&mut self) {
        self.hub.release();
        self.member.release();
    }
}
