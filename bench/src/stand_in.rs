//! Servers of our own in the place of a member: this program again as another process, so that its
//! usage does not count as a proxy's.

mod serve;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use hub_tests::ports;
use hub_tests::process::Process;
use kit::pki::{self, Authority, Leaf};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use harness::usage::Tree;

pub use self::serve::{Gone, serve};

/// What such a process is told.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Where to listen
    #[arg(long)]
    pub address: SocketAddr,
    /// PEM file of the serving certificate
    #[arg(long)]
    certificate: PathBuf,
    /// PEM file of its key
    #[arg(long)]
    key: PathBuf,
}

/// Such a process, which may not listen yet.
pub struct StandIn {
    /// The process's and its certificate's, and part of files' names.
    pub name: &'static str,
    pub address: SocketAddr,
    /// The authority of its certificate.
    pub authority: Arc<Authority>,
    pub tree: Tree,
    pub process: Process,
}

/// This program, by its process: its file may have been replaced meanwhile.
pub fn this_program() -> PathBuf {
    PathBuf::from(format!("/proc/{}/exe", std::process::id()))
}

// === impl Options ===

impl Options {
    /// TLS settings of a server with that certificate that selects from `alpn`.
    pub fn tls(&self, alpn: &[&str]) -> Result<Arc<ServerConfig>> {
        let unreadable = || format!("cannot read {}", self.certificate.display());
        let chain = CertificateDer::pem_file_iter(&self.certificate).with_context(unreadable)?;
        let chain = chain.collect::<Result<Vec<_>, _>>().with_context(unreadable)?;
        let key =
            PrivateKeyDer::from_pem_file(&self.key).with_context(|| format!("cannot read {}", self.key.display()))?;
        let mut config = ServerConfig::builder_with_provider(pki::provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Ok(Arc::new(config))
    }
}

// === impl StandIn ===

impl StandIn {
    /// Starts this program's hidden `command`, which takes [`Options`], with files in `directory`.
    /// `name` is unlike any other's.
    pub fn start(directory: &Path, name: &'static str, command: &str) -> Result<Self> {
        let authority = Arc::new(Authority::new(&format!("{name}-ca")));
        let serving = authority.issue(&Leaf::server(name)).write_to(directory, name)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));
        let args = [
            command.to_owned(),
            format!("--address={address}"),
            format!("--certificate={}", serving.certificate.display()),
            format!("--key={}", serving.key.display()),
        ];
        let process = Process::start(name, &this_program(), args, directory)?;
        Ok(Self { name, address, authority, tree: Tree::new([process.id()]), process })
    }
}
