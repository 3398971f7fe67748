//! The near end: a tunnel-server, and callers of the far end's destination, through it and
//! directly.

use std::fmt;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use kit::pki::PemFiles;
use kit::wait::eventually;
use tempfile::TempDir;
use tunnel::ClusterName;
use tunnel_server::Server;
use tunnel_tests::pki::Pki;

use crate::measure::{Duplex, LIMIT};
use crate::network::Network;

const CLUSTER: &str = "far";

/// Everything, running. Ended on drop.
pub(crate) struct Near {
    _server: Server,
    network: Network,
    directory: TempDir,
}

// === impl Near ===

impl Near {
    /// Starts both ends and waits for the link.
    pub(crate) fn start() -> Result<Self> {
        let mut network = Network::prepare()?;
        let directory = tempfile::tempdir()?;
        let pki = Pki::write(directory.path());
        let server = Server::start([
            "tunnel-server".to_owned(),
            format!("--agent-listen={}", network.listen()),
            format!("--agent-tls-cert-file={}", pki.agent_listener.certificate.display()),
            format!("--agent-tls-private-key-file={}", pki.agent_listener.key.display()),
            format!("--agent-client-ca-file={}", pki.agents_ca.display()),
            format!("--frontend-uds={}", socket(&directory).display()),
            "--admin-listen=127.0.0.1:0".to_owned(),
        ])?;
        server.wait_ready(LIMIT)?;
        let PemFiles { certificate, key } = pki.agent(CLUSTER);
        let flags = vec![
            "tunnel-agent".to_owned(),
            format!("--cluster={CLUSTER}"),
            format!("--server-ca-file={}", pki.serving_ca.display()),
            "--server-name=localhost".to_owned(),
            format!("--cert-file={}", certificate.display()),
            format!("--key-file={}", key.display()),
            "--admin-listen=127.0.0.1:0".to_owned(),
        ];
        network.start_agent(flags, server.agent_address())?;
        let cluster = ClusterName::parse(CLUSTER)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async { eventually(LIMIT, || server.registry().is_linked(&cluster)).await });
        Ok(Self { _server: server, network, directory })
    }

    /// A connection without a tunnel.
    pub(crate) fn direct(&self) -> Result<Box<dyn Duplex>> {
        let stream = TcpStream::connect_timeout(&self.network.direct(), LIMIT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        Ok(Box::new(stream))
    }

    /// A connection through the tunnel.
    pub(crate) fn tunnelled(&self) -> Result<Box<dyn Duplex>> {
        let mut stream = UnixStream::connect(socket(&self.directory))?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        let destination = self.network.destination();
        write!(stream, "CONNECT {destination} HTTP/1.1\r\nHost: {destination}\r\nTunnel-Cluster: {CLUSTER}\r\n\r\n")?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).context("while waiting for the answer")?;
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head);
        ensure!(head.starts_with("HTTP/1.1 200 "), "{head}");
        Ok(Box::new(stream))
    }
}

impl fmt::Display for Near {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.network.fmt(f)
    }
}

fn socket(directory: &TempDir) -> PathBuf {
    directory.path().join("frontend.sock")
}
