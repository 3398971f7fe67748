//! The environment of a node's programs: mounts, a network, control groups.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::process::Process;
use hub_tests::wait;

use super::Node;
use crate::family::Family;
use crate::namespaces::hierarchies;

/// Time for a process to enter its namespaces.
const LIMIT: Duration = Duration::from_mins(1);

/// Directories that programs write to regardless of configuration; each node has its own.
const OWN: [&str; 4] = ["/var/lib/cni", "/var/lib/kubelet", "/var/log/pods", "/var/log/containers"];

/// Settings of the node's network. Without those of the bridge, a pod that reaches itself or a
/// neighbour by a Service's address never gets an answer.
const SETTINGS: [&str; 5] = [
    "net.ipv4.ip_forward",
    "net.ipv4.conf.all.route_localnet",
    "net.ipv6.conf.all.forwarding",
    "net.bridge.bridge-nf-call-iptables",
    "net.bridge.bridge-nf-call-ip6tables",
];

/// The controllers that a group's children have, where one hierarchy has all controllers.
const PASSED_ON: &str = "cgroup.subtree_control";

/// Limit of inotify instances. A kubelet takes about thirty, and the limit, 128 by default, is
/// shared by all nodes.
const WATCHERS: (&str, u32) = ("/proc/sys/fs/inotify/max_user_instances", 1024);

/// Where the limit may not be raised, kubelets report the lack themselves.
fn raise_watchers() {
    let (file, least) = WATCHERS;
    let now = std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse::<u32>().ok());
    if now.is_some_and(|now| now < least) {
        drop(std::fs::write(file, least.to_string()));
    }
}

/// The settings that this kernel has: one without a file in `/proc/sys` belongs to a missing
/// module.
fn settings() -> impl Iterator<Item = &'static str> {
    SETTINGS.into_iter().filter(|name| Path::new("/proc/sys").join(name.replace('.', "/")).exists())
}

/// A process in namespaces of its own, and its id.
pub(super) fn hold(directory: &Path) -> Result<(i32, Process)> {
    raise_watchers();
    let args = ["--mount", "--net", "--uts", "sleep", "infinity"];
    let process = Process::start("node", Path::new("unshare"), args, directory)?;
    let id = process.program_id()?;
    let namespace = |id: &str| std::fs::read_link(format!("/proc/{id}/ns/net"));
    wait::until("a node's namespaces", LIMIT, || {
        ensure!(namespace(&id.to_string())? != namespace("self")?, "not yet");
        // It has left its mounts, too, once it is the program that holds them.
        ensure!(std::fs::read_to_string(format!("/proc/{id}/comm"))?.trim() == "sleep", "not yet");
        Ok(())
    })?;
    Ok((id, process))
}

/// Connects this node's bridge to that of node `number`, whose namespaces `holder` holds.
pub(super) fn plug(number: u8, holder: i32) -> Result<()> {
    let run = |line: String| {
        let output = std::process::Command::new("ip").args(line.split(' ')).output()?;
        ensure!(output.status.success(), "ip {line}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    };
    run(format!("link add to{number} type veth peer name up0"))?;
    run(format!("link set to{number} master cni0 up"))?;
    run(format!("link set up0 netns {holder}"))
}

// === impl Node ===

impl Node {
    pub(super) fn lay(&self, services: &str, group: &str) -> Result<()> {
        self.mount().context("mounts")?;
        self.connect(services).context("network")?;
        self.group(group).context("control groups")
    }

    fn mount(&self) -> Result<()> {
        self.ok(&format!("hostname {}", self.name()))?;
        let directory = self.directory.display();
        let groups = self.directory.join("cg");
        std::fs::create_dir_all(&groups)?;
        let groups = groups.display();
        self.ok(&format!("mount --rbind /sys/fs/cgroup {groups}"))?;
        self.ok("mount -t sysfs sysfs /sys")?;
        self.ok(&format!("mount --rbind {groups} /sys/fs/cgroup"))?;
        self.ok(&format!("umount -l {groups}"))?;
        self.ok("mount -t tmpfs tmpfs /run")?;
        self.ok("mkdir -p /run/lock")?;
        for place in OWN {
            let own = format!("{directory}{place}");
            self.ok(&format!("mkdir -p {own} {place}"))?;
            self.ok(&format!("mount --bind {own} {place}"))?;
        }
        // Kubelet and containers have to see each other's mounts.
        self.ok("mount --make-rshared /").map(drop)
    }

    fn connect(&self, services: &str) -> Result<()> {
        let (address, prefix) = (self.family.node(self.number), self.family.prefix());
        let at_once = if self.family == Family::V6 { "nodad" } else { "" };
        self.ok("ip link set lo up")?;
        self.ok("ip link add cni0 type bridge")?;
        self.ok(&format!("ip addr add {address}/{prefix} dev cni0 {at_once}"))?;
        self.ok("ip link set cni0 up")?;
        if self.number > 1 {
            self.ok("ip link set up0 master cni0 up")?;
        }
        // A Service's address needs a route before it is translated.
        self.ok(&format!("ip route add {services} dev cni0"))?;
        settings().try_for_each(|name| self.ok(&format!("sysctl -qw {name}=1")).map(drop))
    }

    fn group(&self, group: &str) -> Result<()> {
        for hierarchy in hierarchies() {
            let whole = hierarchy.join(group);
            let own = whole.join(self.name());
            std::fs::create_dir_all(&own)?;
            for directory in [&whole, &own] {
                inherit(&hierarchy, directory)?;
            }
        }
        Ok(())
    }
}

/// A new CPU set is empty until it is filled, and a new group in a common hierarchy has no
/// controllers.
fn inherit(hierarchy: &Path, directory: &Path) -> Result<()> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        if hierarchy.join("cpuset.sched_load_balance").exists() {
            std::fs::write(directory.join(file), std::fs::read(hierarchy.join(file))?)?;
        }
    }
    let passed_on = std::fs::read_to_string(hierarchy.join(PASSED_ON)).unwrap_or_default();
    passed_on.split_whitespace().try_for_each(|name| Ok(std::fs::write(directory.join(PASSED_ON), format!("+{name}"))?))
}
