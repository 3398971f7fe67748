//! The binary as a process: its exit codes, its complaints, its signals.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use kit::client::Client;
use kit::pki::{Authority, Issued, Leaf, Trust};
use kit::process::LoggedProcess;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tunnel::register::{self, Registration};
use tunnel::{ClusterName, LinkError, Serving, Settings};

const PATIENCE: Duration = Duration::from_secs(20);

/// A server without a hub, and the identity of an agent.
struct Running {
    process: LoggedProcess,
    identity: Issued,
    directory: TempDir,
}

// === impl Running ===

impl Running {
    fn start(extra: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let authority = Authority::new("agents");
        let ca = authority.write_to(directory.path(), "ca").unwrap();
        let files = Authority::new("servers").issue(&Leaf::server("s")).write_to(directory.path(), "serving").unwrap();
        let mut command = command();
        command
            .arg(format!("--agent-client-ca-file={}", ca.display()))
            .arg(format!("--agent-tls-cert-file={}", files.certificate.display()))
            .arg(format!("--agent-tls-private-key-file={}", files.key.display()))
            .arg(format!("--frontend-uds={}", directory.path().join("frontend.sock").display()))
            .args(["--agent-listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--log-format=json"])
            .args(extra);
        let identity = authority.issue(&Leaf::client("system:tunnel-agent:east"));
        Self { process: LoggedProcess::start(&mut command), identity, directory }
    }

    /// The address for agents, once it serves.
    fn agents(&self) -> SocketAddr {
        self.process.line("serving")["agents"].as_str().unwrap().parse().unwrap()
    }

    fn uds(&self) -> PathBuf {
        self.directory.path().join("frontend.sock")
    }

    /// A byte stream through an agent that is linked.
    fn connect(&self) -> UnixStream {
        let mut stream = UnixStream::connect(self.uds()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"CONNECT east:443 HTTP/1.1\r\n\r\n").unwrap();
        let mut head = [0; b"HTTP/1.1 200 Connection Established\r\n\r\n".len()];
        stream.read_exact(&mut head).unwrap();
        assert!(head.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&head));
        stream
    }
}

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tunnel-server"));
    command.env_clear();
    command
}

/// Links an agent that accepts streams and holds them open. The channel gets the result of the
/// link.
fn link(runtime: &Runtime, address: SocketAddr, identity: &Issued) -> mpsc::Receiver<Result<(), LinkError>> {
    let client = Client::new(address, Trust::Anyone, Some(identity));
    let (report, ended) = mpsc::channel();
    let registered = runtime.block_on(async {
        let stream = client.tls(&[]).await.unwrap();
        let cluster = ClusterName::parse("east").unwrap();
        let registration = Registration { cluster, agent: "a".into(), link: 0, version: "1".into() };
        register::register(stream, "tunnel-server", &registration, None, PATIENCE).await.unwrap()
    });
    runtime.spawn(async move {
        let hold = |incoming: tunnel::Incoming| async move {
            let _stream = incoming.accept();
            std::future::pending::<()>().await;
        };
        let end = tunnel::serve(registered.io, &Settings::default(), Serving::default(), hold).await;
        let _ = report.send(end);
    });
    ended
}

#[test]
fn sigterm_ends_an_idle_server_at_once() {
    let mut process = Running::start(&[]);
    process.agents();
    assert!(process.uds().exists());
    process.process.signal("TERM");
    process.process.line("drained");
    assert!(process.process.ended().success());
    assert!(!process.uds().exists());
}

#[test]
fn a_second_signal_does_not_wait_for_streams() {
    let runtime = Runtime::new().unwrap();
    let mut process = Running::start(&["--drain-timeout=10m"]);
    let _ended = link(&runtime, process.agents(), &process.identity);
    process.process.line("agent linked");
    let _stream = process.connect();
    process.process.signal("TERM");
    process.process.line("shutting down");
    process.process.signal("INT");
    assert_eq!(process.process.ended().code(), Some(130));
}

#[test]
fn a_killed_server_is_missed_by_its_agent_and_its_frontend() {
    let runtime = Runtime::new().unwrap();
    let mut process = Running::start(&[]);
    let ended = link(&runtime, process.agents(), &process.identity);
    process.process.line("agent linked");
    let mut stream = process.connect();
    process.process.kill();
    let _ = ended.recv_timeout(PATIENCE).expect("the link's end");
    assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
}

#[test]
fn all_that_is_wrong_is_told_at_once_and_nothing_starts() {
    let output = command().args(["--default-cluster=No", "--frontend-listen=127.0.0.1:0"]).output().unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    for part in [
        "no agent could be authenticated",
        "--agent-tls-cert-file",
        "--frontend-client-ca-file",
        "--default-cluster=No",
    ] {
        assert!(complaint.contains(part), "{part}\nmissing in\n{complaint}");
    }
}

#[test]
fn flags_come_from_the_environment_too() {
    let output = command().env("TUNNEL_SERVER_DEFAULT_CLUSTER", "No").output().unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.contains("--default-cluster=No"), "{complaint}");
}
