//! Starts the programs of each tunnel.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use hub_tests::ports;
use hub_tests::process::Process;

use super::entry::{Entry, Link};
use super::files::{CLUSTER, Files};

/// The programs of a tunnel.
#[derive(Clone)]
pub enum Programs {
    Nothing,
    Ours { server: PathBuf, agent: PathBuf, door: Door },
    Konnectivity { server: PathBuf, agent: PathBuf, grpc: bool },
    Haproxy(PathBuf),
}

/// The frontend of ours that is used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Door {
    Uds,
    H2,
}

pub type Started = (Entry, Vec<Process>);

// === impl Programs ===

impl Programs {
    /// Starts them in `directory`, without waiting until they are linked.
    pub fn start(&self, files: &Files, destination: SocketAddr, directory: &Path) -> Result<Started> {
        match self {
            Self::Nothing => Ok((Entry::Direct, Vec::new())),
            Self::Ours { server, agent, door } => ours(server, agent, *door, files, directory),
            Self::Konnectivity { server, agent, grpc } => konnectivity(server, agent, *grpc, files, directory),
            Self::Haproxy(program) => haproxy(program, files, destination, directory),
        }
    }
}

fn ours(server: &Path, agent: &Path, door: Door, files: &Files, directory: &Path) -> Result<Started> {
    let agents = format!("127.0.0.1:{}", ports::free()?);
    let ca = files.authority.display();
    let socket = directory.join("frontend.sock");
    let frontend = SocketAddr::from(([127, 0, 0, 1], ports::free()?));
    let (certificate, key) = (files.server.certificate.display(), files.server.key.display());
    let mut flags = vec![
        format!("--agent-listen={agents}"),
        format!("--agent-tls-cert-file={certificate}"),
        format!("--agent-tls-private-key-file={key}"),
        format!("--agent-client-ca-file={ca}"),
        format!("--default-cluster={CLUSTER}"),
        "--admin-listen=127.0.0.1:0".to_owned(),
    ];
    let entry = match door {
        Door::Uds => {
            flags.push(format!("--frontend-uds={}", socket.display()));
            Entry::Connect(socket)
        }
        Door::H2 => {
            flags.push(format!("--frontend-listen={frontend}"));
            flags.push(format!("--frontend-tls-cert-file={certificate}"));
            flags.push(format!("--frontend-tls-private-key-file={key}"));
            flags.push(format!("--frontend-client-ca-file={ca}"));
            Entry::Link(Link::new(frontend, files.frontend.clone()))
        }
    };
    let server = Process::start("server", server, flags, directory)?;
    let flags = [
        format!("--cluster={CLUSTER}"),
        format!("--server={agents}"),
        format!("--server-ca-file={ca}"),
        format!("--cert-file={}", files.agent.certificate.display()),
        format!("--key-file={}", files.agent.key.display()),
        "--api-server=127.0.0.1:1".to_owned(), // the next flag allows the destination
        "--allow=127.0.0.1".to_owned(),
        "--admin-listen=127.0.0.1:0".to_owned(),
    ];
    let agent = Process::start("agent", agent, flags, directory)?;
    Ok((entry, vec![server, agent]))
}

fn konnectivity(server: &Path, agent: &Path, grpc: bool, files: &Files, directory: &Path) -> Result<Started> {
    let (agents, ca) = (ports::free()?, files.authority.display());
    let socket = directory.join("frontend.sock");
    let flags = [
        format!("--mode={}", if grpc { "grpc" } else { "http-connect" }),
        format!("--uds-name={}", socket.display()),
        "--server-port=0".to_owned(),
        "--agent-bind-address=127.0.0.1".to_owned(),
        format!("--agent-port={agents}"),
        "--health-bind-address=127.0.0.1".to_owned(),
        format!("--health-port={}", ports::free()?),
        format!("--admin-port={}", ports::free()?),
        format!("--cluster-cert={}", files.server.certificate.display()),
        format!("--cluster-key={}", files.server.key.display()),
        format!("--cluster-ca-cert={ca}"),
        "--v=0".to_owned(), // a line for every packet otherwise
    ];
    let server = Process::start("server", server, flags, directory)?;
    let flags = [
        "--proxy-server-host=127.0.0.1".to_owned(),
        format!("--proxy-server-port={agents}"),
        format!("--ca-cert={ca}"),
        format!("--agent-cert={}", files.agent.certificate.display()),
        format!("--agent-key={}", files.agent.key.display()),
        "--health-server-host=127.0.0.1".to_owned(),
        format!("--health-server-port={}", ports::free()?),
        format!("--admin-server-port={}", ports::free()?),
        "--v=0".to_owned(),
    ];
    let agent = Process::start("agent", agent, flags, directory)?;
    let entry = if grpc { Entry::Grpc(socket) } else { Entry::Connect(socket) };
    Ok((entry, vec![server, agent]))
}

/// Two processes, as a tunnel has: TLS with both certificates verified between them, a TLS
/// connection for each connection.
fn haproxy(program: &Path, files: &Files, destination: SocketAddr, directory: &Path) -> Result<Started> {
    let middle = format!("127.0.0.1:{}", ports::free()?);
    let (socket, ca) = (directory.join("frontend.sock"), files.authority.display());
    let near = format!(
        "bind unix@{}\n  server far {middle} ssl verify required ca-file {ca} verifyhost localhost crt {}",
        socket.display(),
        files.agent_bundle.display()
    );
    let far = format!(
        "bind {middle} ssl crt {} verify required ca-file {ca}\n  server destination {destination}",
        files.server_bundle.display()
    );
    let start = |name: &str, proxy: &str| -> Result<Process> {
        let path = directory.join(format!("{name}.cfg"));
        std::fs::write(&path, haproxy_configuration(proxy))?;
        Process::start(name, program, ["-db", "-q", "-f", &path.to_string_lossy()], directory)
    };
    let processes = vec![start("far", &far)?, start("near", &near)?];
    Ok((Entry::Relay(socket), processes))
}

fn haproxy_configuration(proxy: &str) -> String {
    let most = descriptors() / HAPROXY_DESCRIPTORS;
    format!(
        "global\n  nbthread 1\n  maxconn {most}\ndefaults\n  mode tcp\n  timeout connect 10s\n  timeout client 1h\n  \
         timeout server 1h\nlisten tunnel\n  {proxy}\n"
    )
}

/// Descriptors for each connection in each of its processes.
pub const HAPROXY_DESCRIPTORS: usize = 2;
/// Descriptors of a program besides its connections, at most.
const OTHER_DESCRIPTORS: u64 = 500;
/// Used if there is no limit.
const ENOUGH: u64 = 100_000;

/// Descriptors that a program may use for connections.
pub fn descriptors() -> usize {
    let limit = net::process::raise_open_files().unwrap_or(ENOUGH).min(ENOUGH);
    usize::try_from(limit.saturating_sub(OTHER_DESCRIPTORS)).unwrap_or_default()
}
