//! A node: mounts, network and name of its own, in which containerd, kubelet and kube-proxy run.
//!
//! The first node is where this process is; each further one is held by a process that does
//! nothing.

mod configuration;
mod environment;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::control_plane::Launcher;
use hub_tests::kubeconfig::{Credential, Kubeconfig};
use hub_tests::process::Process;
use hub_tests::tools::Tool;
use hub_tests::wait;
use kit::pki::{Leaf, Usage};

use crate::family::Family;

/// Time for containerd to start and for an image to be imported, on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_mins(3);

/// A started node. Its programs end when dropped.
pub struct Node {
    number: u8,
    family: Family,
    directory: PathBuf,
    /// Words before each command, so that it runs on the node.
    enter: Vec<String>,
    programs: Vec<Process>,
    _holder: Option<Process>,
}

/// A node's knowledge of its cluster.
pub struct Membership<'a> {
    pub launcher: &'a Launcher,
    /// Address of the API server as nodes reach it.
    pub server: String,
    pub authority: &'a kit::pki::Authority,
    pub authority_file: PathBuf,
    /// Address of the cluster's DNS server.
    pub dns: String,
}

// === impl Node ===

impl Node {
    /// Prepares mounts, network and control groups for the node's programs. `services`: the
    /// addresses of its cluster's Services.
    pub fn prepare(launcher: &Launcher, family: Family, number: u8, services: &str, group: &str) -> Result<Self> {
        let directory = launcher.file(&format!("n{number}"));
        std::fs::create_dir_all(&directory)?;
        let (mut enter, mut holder) = (Vec::new(), None);
        if number > 1 {
            let (held, process) = environment::hold(&directory)?;
            environment::plug(number, held)?;
            enter = ["nsenter", "-t", &held.to_string(), "-m", "-n", "-u", "--"].map(str::to_owned).to_vec();
            holder = Some(process);
        }
        let node = Self { number, family, directory, enter, programs: Vec::new(), _holder: holder };
        node.lay(services, group)?;
        Ok(node)
    }

    /// For example `node1`.
    pub fn name(&self) -> String {
        format!("node{}", self.number)
    }

    /// Runs a command on the node; a failure is an error.
    pub fn run<A: AsRef<str>>(&self, words: impl IntoIterator<Item = A>) -> Result<String> {
        let words: Vec<String> =
            self.enter.iter().cloned().chain(words.into_iter().map(|word| word.as_ref().to_owned())).collect();
        let output = Command::new(&words[0]).args(&words[1..]).output().with_context(|| words.join(" "))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {}: {}", words.join(" "), output.status, said.trim());
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Like [`Self::run`], with a line whose words are separated by spaces.
    pub fn ok(&self, line: &str) -> Result<String> {
        self.run(line.split_whitespace())
    }

    /// Starts `program` on the node; its log is named after node and program.
    pub fn start(&self, name: &str, program: &Path, args: Vec<String>) -> Result<Process> {
        let words = self.enter.iter().cloned().chain([program.display().to_string()]).chain(args);
        let words: Vec<String> = words.collect();
        Process::start(name, Path::new(&words[0]), &words[1..], &self.directory)
    }

    /// Starts containerd.
    pub fn start_containers(&mut self) -> Result<()> {
        let file = self.directory.join("containerd.toml");
        std::fs::write(&file, self.containerd()?)?;
        let network = self.directory.join("cni");
        std::fs::create_dir_all(&network)?;
        std::fs::write(network.join("10-lab.conflist"), self.network().to_string())?;
        let args = vec!["-c".to_owned(), file.display().to_string()];
        self.programs.push(self.start("containerd", Path::new("containerd"), args)?);
        Ok(())
    }

    /// Imports images from files into containerd.
    pub fn import(&mut self, images: &[PathBuf]) -> Result<()> {
        wait::until("containerd", LIMIT, || self.ok("ctr version")).with_context(|| self.tails())?;
        for image in images {
            self.ok(&format!("ctr -n k8s.io images import {}", image.display()))?;
        }
        Ok(())
    }

    /// Joins the cluster.
    pub fn join(&mut self, cluster: &Membership<'_>) -> Result<()> {
        let (name, address) = (self.name(), self.family.node(self.number).to_string());
        let files = |leaf: &Leaf, name: &str| cluster.authority.issue(leaf).write_to(&self.directory, name);
        let kubeconfig = |leaf: &Leaf, name: &str| -> Result<String> {
            let credential = Credential::Certificate(files(leaf, name)?);
            let (server, authority) = (cluster.server.clone(), cluster.authority_file.clone());
            let file = self.directory.join(format!("{name}.kubeconfig"));
            Ok(Kubeconfig { server, authority, credential }.write(file)?.display().to_string())
        };
        let serving = Leaf::new(&name).usage(Usage::Server).san(&name).san(&address);
        let serving = files(&serving, "kubelet-serving")?;
        let config = self.directory.join("kubelet.yaml");
        std::fs::write(&config, self.kubelet(cluster, &serving).to_string())?;
        std::fs::write(self.directory.join("resolv.conf"), "")?;
        let user = Leaf::client(format!("system:node:{name}")).group("system:nodes");
        let args = vec![
            format!("--config={}", config.display()),
            format!("--kubeconfig={}", kubeconfig(&user, "kubelet")?),
            format!("--root-dir={}", self.directory.join("kubelet").display()),
            format!("--cert-dir={}", self.directory.join("certs").display()),
            format!("--hostname-override={name}"),
            format!("--node-ip={address}"),
            format!("--node-labels=topology.kubernetes.io/zone=zone{}", self.number),
            // Nothing reads what it measures of control groups, every ten seconds by default.
            "--housekeeping-interval=1m".to_owned(),
        ];
        let kubelet = self.start("kubelet", cluster.launcher.tools.path(Tool::NodeKubelet), args)?;
        let config = self.directory.join("kube-proxy.yaml");
        let user = kubeconfig(&Leaf::client("system:kube-proxy"), "kube-proxy")?;
        std::fs::write(&config, self.proxy(&user).to_string())?;
        let args = vec![format!("--config={}", config.display())];
        let proxy = self.start("kube-proxy", cluster.launcher.tools.path(Tool::KubeProxy), args)?;
        self.programs.extend([kubelet, proxy]);
        Ok(())
    }

    /// The ends of its programs' logs.
    pub fn tails(&self) -> String {
        let tail = |process: &Process| format!("{}:\n{}", process.log().display(), process.log_tail());
        self.programs.iter().map(tail).collect::<Vec<_>>().join("\n")
    }

    /// Asks its programs to end.
    pub fn release(&mut self) {
        self.programs.iter_mut().for_each(Process::release);
    }
}
