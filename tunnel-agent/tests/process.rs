//! The binary as a process: its complaints, signals and exit codes.

use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use kit::pki::Authority;
use kit::process::LoggedProcess;
use tempfile::TempDir;

/// An agent without links.
struct Running {
    process: LoggedProcess,
    directory: TempDir,
}

// === impl Running ===

impl Running {
    /// An agent with a CA but no token yet; nothing listens at its server's address.
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let ca = Authority::new("ca").write_to(directory.path(), "ca").unwrap();
        let mut command = command();
        command
            .args(["--cluster=c1", "--server=127.0.0.1:9", "--api-server=127.0.0.1:9", "--admin-listen=127.0.0.1:0"])
            .arg(format!("--server-ca-file={}", ca.display()))
            .arg(format!("--token-file={}", directory.path().join("token").display()))
            .arg("--log-format=json");
        Self { process: LoggedProcess::start(&mut command), directory }
    }
}

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tunnel-agent"));
    command.env_clear();
    command
}

fn refused(arguments: &[&str], environment: &[(&str, &str)]) -> (Output, String) {
    let output = command().args(arguments).envs(environment.iter().copied()).output().unwrap();
    let complaint = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(!output.status.success(), "{complaint}");
    (output, complaint)
}

#[test]
fn all_mistakes_are_told_at_once() {
    let (_, complaint) = refused(&["--server=nowhere"], &[]);
    for part in ["--cluster is required", "--server=nowhere", "a credential is required", "--api-server is required"] {
        assert!(complaint.contains(part), "{part} missing in: {complaint}");
    }
}

#[test]
fn every_flag_reads_the_environment() {
    let (_, complaint) = refused(&[], &[("TUNNEL_AGENT_DRAIN_TIMEOUT", "soon")]);
    assert!(complaint.contains("soon") && complaint.contains("--drain-timeout"), "{complaint}");
    let servers = [("TUNNEL_AGENT_SERVER", "a.example:1,b.example"), ("TUNNEL_AGENT_CLUSTER", "c1")];
    let (_, complaint) = refused(&[], &servers);
    assert!(complaint.contains("--server=b.example") && !complaint.contains("a.example"), "{complaint}");
}

#[test]
fn a_missing_token_file_is_told_and_waited_for() {
    let mut process = Running::start();
    let line = process.process.line_with("not linked");
    let reason = line["reason"].as_str().unwrap();
    assert!(reason.contains("token") && reason.contains("no such file"), "{reason}");
    std::fs::write(process.directory.path().join("token"), "a-secret-token").unwrap();
    let line = process.process.line_with("connection refused").to_string();
    assert!(!line.contains("a-secret-token"), "{line}");
    process.process.signal("TERM");
    assert!(process.process.ended().success());
}

#[test]
fn sigterm_ends_an_idle_agent_at_once() {
    let mut process = Running::start();
    process.process.line_with("running");
    let started = SystemTime::now();
    process.process.signal("TERM");
    process.process.line_with("shutting down");
    assert!(process.process.ended().success());
    let took = started.elapsed().unwrap();
    assert!(took < Duration::from_secs(5), "{took:?} of a drain timeout of thirty seconds");
}
