//! The hub: an API server with its aggregator on, and the controllers that show whether an
//! aggregated API blocks others.
//!
//! Namespace deletion is the touchstone: the namespace controller asks every API group, including
//! ours, what to delete.

mod registration;

use anyhow::Result;
use kit::pki::{Authority, Issued, Leaf};

use crate::control_plane::{ApiServer, Etcd, Launcher, start_controller_manager};
use crate::process::Process;

pub use self::registration::{GATEWAY_HOST, MemberSecret, SECRET_NAMESPACE};

/// Common name of the certificate with which the hub calls aggregated API servers.
pub const FRONT_PROXY: &str = "front-proxy-client";

const CONTROLLERS: [&str; 5] = [
    "namespace-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller", // puts tokens into Secrets
    "garbage-collector-controller",
    "certificatesigningrequest-signing-controller", // signs what is approved
];

/// A running hub.
#[derive(Debug)]
pub struct Hub {
    /// Its API server.
    pub server: ApiServer,
    /// Signs the certificate with which the hub calls aggregated API servers.
    pub front_proxy_authority: Authority,
    /// Certificate and key with which the hub calls aggregated API servers.
    pub front_proxy: Issued,
    managers: Vec<Process>,
    launcher: Launcher,
}

// === impl Hub ===

impl Hub {
    /// Starts it, without waiting.
    pub fn start(launcher: &Launcher, etcd: &Etcd) -> Result<Self> {
        Self::start_with(launcher, etcd, &[])
    }

    /// The same with more flags of its API server.
    pub fn start_with(launcher: &Launcher, etcd: &Etcd, more: &[String]) -> Result<Self> {
        Self::start_called(launcher, etcd, "hub", more)
    }

    /// The same with the name `name` and a directory of its own, for tests with several.
    pub fn start_called(launcher: &Launcher, etcd: &Etcd, name: &str, more: &[String]) -> Result<Self> {
        let front_proxy_authority = Authority::new("front-proxy-ca");
        let front_proxy = front_proxy_authority.issue(&Leaf::client(FRONT_PROXY));
        let mut flags = front_proxy_flags(launcher, &front_proxy_authority, &front_proxy)?;
        flags.extend_from_slice(more);
        let server = ApiServer::start(launcher, etcd, name, "10.96.0.0/16", &flags)?;
        Ok(Self { server, front_proxy_authority, front_proxy, managers: Vec::new(), launcher: launcher.clone() })
    }

    /// Waits until it is ready, starts its controllers, and creates the namespace of the clusters'
    /// Secrets.
    pub fn wait_ready(&mut self) -> Result<()> {
        self.server.wait_ready()?;
        self.managers.push(start_controller_manager(&self.launcher, &self.server, &CONTROLLERS)?);
        self.server.create_namespace(SECRET_NAMESPACE)
    }

    /// Signals everything to end.
    pub fn release(&mut self) {
        self.managers.iter_mut().for_each(Process::release);
        self.server.release();
    }
}

/// Flags that make an API server a hub: it forwards its callers' identities and proves itself with
/// `identity`. No `--enable-aggregator-routing`: with it the aggregator refuses an `ExternalName`
/// Service.
pub fn front_proxy_flags(launcher: &Launcher, authority: &Authority, identity: &Issued) -> Result<Vec<String>> {
    let authority_file = authority.write_to(&launcher.directory, "front-proxy-ca")?;
    let files = identity.write_to(&launcher.directory, FRONT_PROXY)?;
    Ok(vec![
        format!("--requestheader-client-ca-file={}", authority_file.display()),
        format!("--requestheader-allowed-names={FRONT_PROXY}"),
        "--requestheader-username-headers=X-Remote-User".to_owned(),
        "--requestheader-uid-headers=X-Remote-Uid".to_owned(),
        "--requestheader-group-headers=X-Remote-Group".to_owned(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
        format!("--proxy-client-cert-file={}", files.certificate.display()),
        format!("--proxy-client-key-file={}", files.key.display()),
        // Logs when it has read another certificate.
        "--vmodule=dynamic_serving_content=2".to_owned(),
    ])
}
