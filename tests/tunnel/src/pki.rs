//! The certificates of one testbed: one authority for servers, one for agents, one for frontends,
//! all as files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kit::pki::{Authority, Issued, Leaf, PemFiles, Trust, client_config};
use rustls::ClientConfig;

/// Authorities and the files they wrote. Tests issue further certificates from the authorities.
#[derive(Debug)]
pub struct Pki {
    /// Signs the certificates of both listeners.
    pub serving: Authority,
    /// Signs the agents' client certificates.
    pub agents: Authority,
    /// Signs the frontends' client certificates.
    pub frontends: Authority,
    directory: PathBuf,
    /// `serving`'s root certificate.
    pub serving_ca: PathBuf,
    /// `agents`' root certificate.
    pub agents_ca: PathBuf,
    /// `frontends`' root certificate.
    pub frontends_ca: PathBuf,
    /// The pair of the agents' listener.
    pub agent_listener: PemFiles,
    /// The pair of the frontends' listener.
    pub frontend_listener: PemFiles,
    frontend: Issued,
}

// === impl Pki ===

impl Pki {
    /// Writes everything into `directory`.
    pub fn write(directory: &Path) -> Self {
        let [serving, agents, frontends] = ["serving", "agents", "frontends"].map(Authority::new);
        let written = |authority: &Authority, stem| authority.write_to(directory, stem).expect("a writable directory");
        let pair = |stem| serving.issue(&Leaf::server(stem)).write_to(directory, stem).expect("a writable directory");
        Self {
            serving_ca: written(&serving, "serving-ca"),
            agents_ca: written(&agents, "agents-ca"),
            frontends_ca: written(&frontends, "frontends-ca"),
            agent_listener: pair("agent-listener"),
            frontend_listener: pair("frontend-listener"),
            frontend: frontends.issue(&Leaf::client("gateway")),
            directory: directory.to_owned(),
            serving,
            agents,
            frontends,
        }
    }

    /// Directory of all files.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The client certificate of `cluster`'s agents, made on first use.
    pub fn agent(&self, cluster: &str) -> PemFiles {
        let stem = format!("agent-{cluster}");
        let files = PemFiles {
            certificate: self.directory.join(format!("{stem}.crt")),
            key: self.directory.join(format!("{stem}.key")),
        };
        if files.certificate.exists() {
            return files;
        }
        let leaf = Leaf::client(format!("system:tunnel-agent:{cluster}"));
        self.agents.issue(&leaf).write_to(&self.directory, &stem).expect("a writable directory")
    }

    /// TLS of a frontend with its certificate.
    pub fn frontend_tls(&self, alpn: &[&str]) -> Arc<ClientConfig> {
        self.frontend_tls_as(Some(&self.frontend), alpn)
    }

    /// TLS of a frontend that presents `identity`.
    pub fn frontend_tls_as(&self, identity: Option<&Issued>, alpn: &[&str]) -> Arc<ClientConfig> {
        client_config(Trust::Authority(&self.serving), identity, alpn)
    }
}
