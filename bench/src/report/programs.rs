//! Versions of the measured programs and of the tools.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::given::Programs;
use crate::tool;

/// The distribution's programs: name, package, flag for the version.
const TOOLS: [(&str, &str, &str); 5] = [
    ("nginx", "nginx-light", "-v"),
    ("haproxy", "haproxy", "-v"),
    ("h2load", "nghttp2-client", "--version"),
    ("wrk", "wrk", "-v"),
    ("rustc", "rustc", "--version"),
];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    pub program: String,
    pub version: String,
}

const ABSENT: &str = "absent";

/// Versions of all programs that this run may use; absent ones are listed as absent.
pub fn versions(given: &Programs) -> Vec<Version> {
    let mut versions: Vec<Version> = TOOLS.iter().map(|(name, package, flag)| tool(name, package, flag)).collect();
    let peers = [
        ("cluster-gateway in Go", &given.go_gateway),
        ("Karmada's aggregated API server", &given.karmada),
        ("konnectivity's proxy-server", &given.anp_server),
        ("konnectivity's proxy-agent", &given.anp_agent),
        ("Open Cluster Management's scheduler", &given.ocm_placement),
        ("Open Cluster Management's choices, timed", &given.ocm_schedule),
        ("Open Cluster Management's registration controllers", &given.ocm_registration),
    ];
    versions.extend(peers.map(|(name, path)| version(name, path.as_deref().map(go_version))));
    let ours = [
        ("cluster-gateway, given", &given.ours.gateway),
        ("cluster-gateway, before", &given.baseline),
        ("tunnel-server, given", &given.ours.tunnel_server),
        ("tunnel-agent, given", &given.ours.tunnel_agent),
    ];
    let ours = ours
        .into_iter()
        .filter_map(|(name, path)| Some(version(name, Some(version_line(path.as_deref()?, "--version")))));
    versions.extend(ours);
    versions
}

/// The output of `program`, on either stream; `None` if it cannot be run or takes longer than a
/// version query may.
pub fn output<A: AsRef<OsStr>>(program: impl AsRef<OsStr>, args: impl IntoIterator<Item = A>) -> Option<String> {
    let mut command = Command::new("timeout");
    let output = command.arg("10").arg(program).args(args).stdin(Stdio::null()).output().ok()?;
    let text = if output.stdout.is_empty() { &output.stderr } else { &output.stdout };
    // 124 to 127 are timeout's own: too late, or there is no such program.
    let ran = output.status.code().is_some_and(|code| code < 124);
    ran.then(|| String::from_utf8_lossy(text).into_owned())
}

fn tool(name: &str, package: &str, flag: &str) -> Version {
    match tool::find(name, package) {
        Ok(path) => version(name, Some(version_line(&path, flag))),
        Err(_absent) => version(name, None),
    }
}

fn version(program: &str, version: Option<String>) -> Version {
    Version { program: program.to_owned(), version: version.unwrap_or_else(|| ABSENT.to_owned()) }
}

/// The first line of its output.
fn version_line(path: &Path, flag: &str) -> String {
    let text = output(path, [flag]).unwrap_or_default();
    text.lines().next().map_or_else(|| "unknown".to_owned(), |line| line.trim().to_owned())
}

/// Go programs carry the module, the commit and the compiler that they were built from; few of them
/// have a flag for it.
fn go_version(path: &Path) -> String {
    let arguments = ["version".as_ref(), "-m".as_ref(), path.as_os_str()];
    output("go", arguments)
        .as_deref()
        .map_or_else(|| "unknown: Go is not here to read it".to_owned(), build_information)
}

/// Reads the output of `go version -m`.
fn build_information(text: &str) -> String {
    let compiler = text.lines().next().and_then(|line| line.rsplit(' ').next()).unwrap_or_default();
    let field = |prefix: &str| text.lines().find_map(|line| line.trim_start().strip_prefix(prefix));
    let module = field("mod\t").unwrap_or_default().split('\t').take(2).collect::<Vec<_>>().join(" ");
    let revision =
        field("build\tvcs.revision=").map(|commit| format!(", commit {}", commit.get(..12).unwrap_or(commit)));
    format!("{module}{}, {compiler}", revision.unwrap_or_default())
}

// === impl Version ===

impl Version {
    pub fn is_absent(&self) -> bool {
        self.version == ABSENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_has_put_in_a_binary_is_read() {
        let text = "/bin/x: go1.26.1\n\tpath\texample.com/x/cmd\n\tmod\texample.com/x\t(devel)\t\n\tdep\ta\tv1\n\
                    \tbuild\tvcs.revision=2b04dd4aaaaaaaaaaaaaaaaa\n";
        assert_eq!(build_information(text), "example.com/x (devel), commit 2b04dd4aaaaa, go1.26.1");
        assert_eq!(
            build_information("/bin/x: go1.26.1\n\tmod\texample.com/x\tv1.2.3\n"),
            "example.com/x v1.2.3, go1.26.1"
        );
    }

    #[test]
    fn what_is_absent_is_said_to_be() {
        assert_eq!(tool("no-such-program", "none", "-v").version, "absent");
        assert_eq!(output("no-such-program", ["-v"]), None);
        let versions = versions(&Programs::default());
        assert!(versions.iter().any(|found| found.program == "rustc" && found.version.starts_with("rustc 1.")));
    }
}
