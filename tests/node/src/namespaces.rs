//! Namespaces of our own for this process and all that it starts.
//!
//! The process becomes `unshare`, below which a shell is the first process of the new namespaces,
//! and starts this executable again. Whatever ends one of the two ends everything: the kernel kills
//! all processes of a PID namespace whose first one ends, and mounts, interfaces and addresses go
//! with the last process in theirs. Control groups alone stay; the shell removes them, and the
//! next run those of runs that were killed.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

/// Set inside; its value names the run's control groups.
const INSIDE: &str = "NODE_TESTS_INSIDE";
/// What control groups of runs begin with.
const GROUP: &str = "node-tests-";
const GROUPS: &str = "/sys/fs/cgroup";
/// Everything apart from what runs elsewhere. `--kill-child`: or the end of `unshare` ends nothing.
const UNSHARE: [&str; 7] = ["--mount", "--net", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc"];

/// The first process. It buries those whose parents are gone, and a signal ends it, which a first
/// process without a handler would not notice. Processes that were killed leave their control
/// groups a moment later.
const FIRST: &str = r#"trap 'exit 130' INT TERM HUP
"$0" "$@" &
wait $!
code=$?
kill -KILL -1 2>/dev/null
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  rest=$(find /sys/fs/cgroup -depth -path "*/node-tests-$NODE_TESTS_INSIDE*" -type d 2>/dev/null)
  [ -n "$rest" ] || break
  rmdir $rest 2>/dev/null || sleep 0.1
done
exit "$code""#;

/// Whether what is needed to leave is there; a step that nodes begin with is tried.
const TRIAL: &str = "mount -t tmpfs tmpfs /run && mount -t sysfs sysfs /sys && ip link add cni0 type bridge \
                     && iptables -t nat -L >/dev/null";

/// Debian's packages with what nodes need and cannot be built here.
pub const PACKAGES: &str = "containerd runc containernetworking-plugins iptables conntrack ebtables iproute2";
const PROGRAMS: [&str; 8] = ["containerd", "ctr", "runc", "iptables", "conntrack", "ip", "nsenter", "unshare"];
/// Where distributions put plugins of container networks.
const PLUGINS: [&str; 2] = ["/usr/lib/cni", "/opt/cni/bin"];

/// This run's name, inside.
pub fn inside() -> Option<String> {
    std::env::var(INSIDE).ok()
}

/// What control groups of this run are called.
pub fn group(run: &str) -> String {
    format!("{GROUP}{run}")
}

/// The plugins' directory.
pub fn plugins() -> Result<&'static Path> {
    let found = PLUGINS.iter().map(Path::new).find(|directory| directory.join("bridge").is_file());
    found.with_context(|| format!("no bridge plugin in {}: install {PACKAGES}", PLUGINS.join(" or ")))
}

/// An error says why this machine can have no nodes.
pub fn possible() -> Result<()> {
    let path = path();
    let directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    for program in PROGRAMS {
        let is_there = directories.iter().any(|directory| directory.join(program).is_file());
        ensure!(is_there, "{program} is not in PATH: install {PACKAGES} (names of Debian's packages)");
    }
    plugins()?;
    let tried = Command::new("unshare").args(UNSHARE).args(["sh", "-ec", TRIAL]).env("PATH", path).output()?;
    if !tried.status.success() {
        let said = String::from_utf8_lossy(&tried.stderr);
        bail!("namespaces and mounts may not be made here (root may): {}", said.trim());
    }
    Ok(())
}

/// Starts this process again inside. Returns only if that fails.
pub fn enter<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Result<()> {
    remove_dead();
    let executable = std::env::current_exe()?;
    let error = Command::new("unshare")
        .args(UNSHARE)
        .args(["sh", "-c", FIRST])
        .arg(executable)
        .args(arguments)
        .env(INSIDE, std::process::id().to_string())
        .env("PATH", path())
        .stdin(Stdio::null())
        .exec();
    Err(error).context("cannot run unshare")
}

/// Where an operator's shell would look, too.
fn path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

/// The directories in which control groups are made: one for each controller, or the only one.
pub fn hierarchies() -> Vec<PathBuf> {
    let root = Path::new(GROUPS);
    if root.join("cgroup.controllers").is_file() {
        return vec![root.to_path_buf()];
    }
    let entries = root.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.join("cgroup.procs").is_file() && !path.is_symlink()).collect()
}

/// Removes control groups of runs that were killed. One that is in use stays by itself.
fn remove_dead() {
    for hierarchy in hierarchies() {
        for entry in hierarchy.read_dir().into_iter().flatten().flatten() {
            let name = entry.file_name();
            let run = name.to_str().and_then(|name| name.strip_prefix(GROUP));
            if run.is_some_and(|run| !Path::new("/proc").join(run).exists()) {
                drop(remove(&entry.path()));
            }
        }
    }
}

fn remove(group: &Path) -> io::Result<()> {
    for entry in group.read_dir()?.flatten() {
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    std::fs::remove_dir(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_installs_what_is_needed() {
        let gate = include_str!("../../../.ci/run");
        assert!(gate.contains(&format!("nodes=\"{PACKAGES}\"")), "{PACKAGES}");
        let page = include_str!("../../../CONTRIBUTING.md");
        assert!(page.contains(&format!("apt-get install --no-install-recommends {PACKAGES}\n")), "{PACKAGES}");
    }
}
