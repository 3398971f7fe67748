//! Certificates of the tunnels, as files: every target gets the same.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use kit::pki::{ALPN_H2, Authority, Leaf, PemFiles, Trust, client_config};
use rustls::ClientConfig;

/// Under which the servers know the agent.
pub const CLUSTER: &str = "bench";

pub struct Files {
    pub authority: PathBuf,
    pub server: PemFiles,
    pub agent: PemFiles,
    /// Key, certificate and chain in one file, as `HAProxy` wants them.
    pub server_bundle: PathBuf,
    pub agent_bundle: PathBuf,
    /// TLS settings of a frontend that speaks HTTP/2.
    pub frontend: Arc<ClientConfig>,
}

// === impl Files ===

impl Files {
    pub fn write(directory: &Path) -> Result<Self> {
        let authority = Authority::new("bench-tunnel-ca");
        let server = authority.issue(&Leaf::server("localhost"));
        let agent = authority.issue(&Leaf::client(format!("system:tunnel-agent:{CLUSTER}")));
        let frontend = authority.issue(&Leaf::client("frontend"));
        let bundle = |name: &str, of: &kit::pki::Issued| -> Result<PathBuf> {
            let path = directory.join(name);
            std::fs::write(&path, format!("{}{}", of.chain_pem, of.key_pem))?;
            Ok(path)
        };
        Ok(Self {
            authority: authority.write_to(directory, "tunnel-ca")?,
            server_bundle: bundle("tunnel-server.pem", &server)?,
            agent_bundle: bundle("tunnel-agent.pem", &agent)?,
            server: server.write_to(directory, "tunnel-server")?,
            agent: agent.write_to(directory, "tunnel-agent")?,
            frontend: client_config(Trust::Authority(&authority), Some(&frontend), ALPN_H2),
        })
    }
}
