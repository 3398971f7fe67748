//! An agent of the member, in this process: the servers that it links to, its credential, and what
//! else it may reach.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use kit::pki::PemFiles;
use tunnel_agent::Agent;

use super::DRAIN;
use crate::control_plane::Launcher;

/// An agent's credential.
#[derive(Clone, Debug)]
pub enum AgentCredential {
    /// A ServiceAccount's token of the hub, in a file.
    Token(PathBuf),
    /// A client certificate and its key.
    Certificate(PemFiles),
    /// The agent gets one by joining a hub.
    Joining(Joining),
}

/// The files for joining a hub.
#[derive(Clone, Debug)]
pub struct Joining {
    pub bootstrap: PathBuf,
    pub state_dir: PathBuf,
    /// The member's kubeconfig.
    pub kubeconfig: PathBuf,
}

/// An agent, not yet started.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    flags: Vec<String>,
}

// === impl AgentCredential ===

impl AgentCredential {
    /// `token`, written to a file that is named after `name`.
    pub fn token(launcher: &Launcher, name: &str, token: &str) -> Result<Self> {
        let path = launcher.file(&format!("agent-{name}.token"));
        std::fs::write(&path, token)?;
        Ok(Self::Token(path))
    }
}

// === impl AgentOptions ===

impl AgentOptions {
    /// An agent of `cluster` that links to the tunnel-server at `server`, whose certificate is
    /// issued by the CA in `authority`, and serves the API server at `api_server`.
    pub fn new(
        cluster: &str,
        server: SocketAddr,
        authority: &Path,
        api_server: SocketAddr,
        credential: AgentCredential,
    ) -> Self {
        let mut flags = vec![
            "tunnel-agent".to_owned(),
            format!("--cluster={cluster}"),
            format!("--server={server}"),
            format!("--server-ca-file={}", authority.display()),
            format!("--api-server={api_server}"),
            "--admin-listen=127.0.0.1:0".to_owned(),
            DRAIN.to_owned(),
        ];
        match credential {
            AgentCredential::Token(path) => flags.push(format!("--token-file={}", path.display())),
            AgentCredential::Certificate(files) => {
                flags.push(format!("--cert-file={}", files.certificate.display()));
                flags.push(format!("--key-file={}", files.key.display()));
            }
            AgentCredential::Joining(Joining { bootstrap, state_dir, kubeconfig }) => flags.extend([
                "--register".to_owned(),
                format!("--bootstrap-kubeconfig={}", bootstrap.display()),
                format!("--state-dir={}", state_dir.display()),
                format!("--kubeconfig={}", kubeconfig.display()),
            ]),
        }
        Self { flags }
    }

    /// The same with another flag.
    #[must_use]
    pub fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.to_owned());
        self
    }

    /// The same, linked to another tunnel-server, too.
    #[must_use]
    pub fn also(mut self, server: SocketAddr) -> Self {
        self.flags.push(format!("--server={server}"));
        self
    }

    /// Its arguments; the first is the program's name.
    pub fn flags(self) -> Vec<String> {
        self.flags
    }

    /// The same with another destination that it may reach.
    #[must_use]
    pub fn allow(mut self, destination: &str) -> Self {
        self.flags.push(format!("--allow={destination}"));
        self
    }

    /// Starts it, without waiting for its links.
    pub fn start(&self) -> Result<Agent> {
        Agent::start(&self.flags).with_context(|| format!("the agent did not start: {}", self.flags.join(" ")))
    }
}
