//! Namespaces of its own for this process and all that it starts.
//!
//! The process becomes a shell, which starts `unshare`, below which a shell is the first process of
//! the new namespaces and starts this executable again. The end of any of the three ends
//! everything: the kernel kills the next one with it, and all processes of a PID namespace whose
//! first process ends; mounts, interfaces and addresses go with the last process in their
//! namespaces. Only control groups stay, for the outer shell to remove. If that shell was killed,
//! the next run removes them.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use hub_tests::kubectl::{Invocation, Kubectl};

/// Environment variable that is set inside; its value names the run's control groups.
const INSIDE: &str = "NODE_TESTS_INSIDE";
/// Prefix of the names of runs' control groups.
const GROUP: &str = "node-tests-";
const GROUPS: &str = "/sys/fs/cgroup";
/// Separates everything from the rest of the machine. Without `--kill-child`, the end of `unshare`
/// would end nothing.
const UNSHARE: [&str; 7] = ["--mount", "--net", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc"];

/// The shell script that this process becomes. On a signal, and when the inner process ends, it
/// ends everything, and then removes the control groups, which processes leave a moment after they
/// were killed.
const KEEPER: &str = r#"end() {
  kill -KILL "$inside" 2>/dev/null
  wait "$inside" 2>/dev/null
  for _ in $(seq 100); do
    left=$(find /sys/fs/cgroup -depth -path "*/node-tests-$NODE_TESTS_INSIDE*" -type d 2>/dev/null)
    [ -n "$left" ] || break
    rmdir $left 2>/dev/null || sleep 0.1
  done
  exit "$1"
}
trap 'end 130' INT TERM HUP
setpriv --pdeathsig KILL "$@" &
inside=$!
wait "$inside"
end $?"#;
/// Script of the first process inside, which reaps processes whose parents are gone.
const FIRST: &str = r#""$0" "$@" & wait $!"#;

/// Tries whether the required namespaces and mounts can be made, with one of the first steps of a
/// node.
const TRIAL: &str = "mount -t tmpfs tmpfs /run && mount -t sysfs sysfs /sys && ip link add cni0 type bridge \
                     && iptables -t nat -L >/dev/null";

/// Debian's packages with the programs that nodes need and that cannot be built here.
pub const PACKAGES: &str = "containerd runc containernetworking-plugins iptables conntrack ebtables iproute2 ipset";
const PROGRAMS: [&str; 10] =
    ["containerd", "ctr", "runc", "iptables", "ipset", "conntrack", "ip", "nsenter", "unshare", "setpriv"];
/// Directories where distributions put plugins of container networks.
const PLUGINS: [&str; 2] = ["/usr/lib/cni", "/opt/cni/bin"];

/// This run's name, if this process is inside.
pub fn inside() -> Option<String> {
    std::env::var(INSIDE).ok()
}

/// Name of a run's control groups.
pub fn group(run: &str) -> String {
    format!("{GROUP}{run}")
}

/// The plugins' directory.
pub fn plugins() -> Result<&'static Path> {
    let found = PLUGINS.iter().map(Path::new).find(|directory| directory.join("bridge").is_file());
    found.with_context(|| format!("no bridge plugin in {}: install {PACKAGES}", PLUGINS.join(" or ")))
}

/// An error gives the reason why this machine can have no nodes.
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
    let error = Command::new("sh")
        .args(["-c", KEEPER, "keeper", "unshare"])
        .args(UNSHARE)
        .args(["sh", "-c", FIRST])
        .arg(executable)
        .args(arguments)
        .env(INSIDE, std::process::id().to_string())
        .env("PATH", path())
        .stdin(Stdio::null())
        .exec();
    Err(error).context("cannot run a shell")
}

/// A command that starts this executable again, within this run's namespaces, for another testbed.
/// It ends with this process, and gets `name` as its argument.
pub fn nested(name: &str) -> Result<Invocation> {
    let run = inside().context("not in namespaces of its own")?;
    let executable = std::env::current_exe()?.display().to_string();
    let words = [&["--pdeathsig", "KILL", "unshare"], &UNSHARE[..], &["sh", "-c", FIRST, &executable, name]].concat();
    let setpriv = Kubectl { binary: "setpriv".into(), kubeconfig: "none".into(), cache: "/tmp".into() };
    Ok(setpriv.args(words).env(INSIDE, &format!("{run}-{name}")))
}

/// The search path, with the directories that an operator's shell has, too.
fn path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

/// The directories in which control groups are made: one for each controller, or a single one.
pub fn hierarchies() -> Vec<PathBuf> {
    let root = Path::new(GROUPS);
    if root.join("cgroup.controllers").is_file() {
        return vec![root.to_path_buf()];
    }
    let entries = root.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.join("cgroup.procs").is_file() && !path.is_symlink()).collect()
}

/// Removes control groups of runs that were killed. A group in use cannot be removed, and stays.
fn remove_dead() {
    for hierarchy in hierarchies() {
        for entry in hierarchy.read_dir().into_iter().flatten().flatten() {
            let name = entry.file_name();
            let run = name.to_str().and_then(|name| name.strip_prefix(GROUP));
            let process = run.and_then(|run| run.split('-').next());
            if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
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
        let page = include_str!("../../../docs/contributing.md");
        assert!(
            page.contains(&format!("apt-get install --no-install-recommends \\\n      {PACKAGES}\n")),
            "{PACKAGES}"
        );
    }
}
