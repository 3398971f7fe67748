//! The gateway under test: in this process, on a fixed port, serving the hub's API group.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use gateway::Gateway;
use kit::pki::{Authority, Leaf, PemFiles};
use parking_lot::{RwLock, RwLockReadGuard};

use crate::control_plane::Launcher;
use crate::gate::Gate;
use crate::hub::{GATEWAY_HOST, Hub, SECRET_NAMESPACE};
use crate::ports;
use crate::tls_server::TlsServer;

/// The log of all programs of the product in this process.
pub const LOG: &str = "product.log";
/// Time for the gateway to read the hub's Secrets and ConfigMap and report ready.
const START_LIMIT: Duration = Duration::from_secs(30);
/// Time for the hub to find it available: it checks a failed API every few seconds.
const AVAILABLE_LIMIT: Duration = Duration::from_mins(1);

/// A gateway that tests can also stop and start.
pub struct Product {
    server: TlsServer,
    flags: Vec<String>,
    /// The relay between the hub and it, once registered.
    gate: Option<Gate>,
    running: RwLock<Option<Gateway>>,
}

/// While it lives, the gateway is not stopped.
pub type InUse<'a> = RwLockReadGuard<'a, Option<Gateway>>;

// === impl Product ===

impl Product {
    /// Starts it with `more` flags and its own ServiceAccount on `hub`, registers it there, and
    /// waits until the hub reports it available.
    pub fn start(launcher: &Launcher, hub: &Hub, more: &[String]) -> Result<Self> {
        log_to(&launcher.file(LOG))?;
        let mut product = Self::start_unregistered(launcher, "gateway", &hub.create_gateway_account()?, more)?;
        let gate = Gate::start(product.address())?;
        hub.register_gateway(gate.port(), product.authority())?;
        product.gate = Some(gate);
        hub.server
            .wait_for("apiservice v1alpha1.cluster.core.oam.dev", "Available", AVAILABLE_LIMIT)
            .context("the APIService did not become available")?;
        Ok(product)
    }

    /// Starts one named `name` for the hub of `kubeconfig`, as the user in it, without registering
    /// it on that hub.
    pub fn start_unregistered<S: AsRef<str>>(
        launcher: &Launcher,
        name: &str,
        kubeconfig: &Path,
        more: &[S],
    ) -> Result<Self> {
        let authority = Authority::new(&format!("{name}-ca"));
        let authority_file = authority.write_to(&launcher.directory, &format!("{name}-ca"))?;
        let serving = authority.issue(&Leaf::server(name).san(GATEWAY_HOST)).write_to(&launcher.directory, name)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));
        let mut flags = flags(address, kubeconfig, &serving);
        flags.extend(more.iter().map(|flag| flag.as_ref().to_owned()));
        let server = TlsServer::new(address, authority, authority_file);
        let product = Self { server, flags, gate: None, running: RwLock::new(None) };
        *product.running.write() = Some(product.launch()?);
        Ok(product)
    }

    /// Keeps other tests from stopping it.
    pub fn in_use(&self) -> InUse<'_> {
        self.running.read()
    }

    /// Stops it once no test uses it, calls `while_stopped`, and starts it again.
    pub fn restart(&self, while_stopped: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut running = self.running.write();
        if let Some(gateway) = running.take() {
            gateway.stop().context("the gateway did not stop in order")?;
        }
        let outcome = while_stopped();
        *running = Some(self.launch()?);
        outcome
    }

    /// The relay for what the hub sends to it. `None` if it is not registered.
    pub fn gate(&self) -> Option<&Gate> {
        self.gate.as_ref()
    }

    fn launch(&self) -> Result<Gateway> {
        let gateway = Gateway::start(&self.flags)?;
        gateway.wait_ready(START_LIMIT)?;
        Ok(gateway)
    }
}

impl Deref for Product {
    type Target = TlsServer;

    fn deref(&self) -> &TlsServer {
        &self.server
    }
}

impl Drop for Product {
    fn drop(&mut self) {
        // Without draining: there is no client left to wait for.
        drop(self.running.get_mut().take());
    }
}

/// Writes the gateway's own log next to the logs of the other programs.
fn log_to(path: &Path) -> Result<()> {
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_env_filter(
        "info,gateway=debug,auth=debug,tunnel=debug,tunnel_server=debug,links=debug,tunnel_agent=debug",
    );
    // If this process has another subscriber already, that one will do.
    drop(subscriber.with_writer(Arc::new(File::create(path)?)).try_init());
    Ok(())
}

/// The arguments of a gateway at `address`; the first is the program's name.
pub fn flags(address: SocketAddr, kubeconfig: &Path, serving: &PemFiles) -> Vec<String> {
    let kubeconfig = kubeconfig.display();
    vec![
        "cluster-gateway".to_owned(),
        format!("--secure-port={}", address.port()),
        format!("--bind-address={}", address.ip()),
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        format!("--secret-namespace={SECRET_NAMESPACE}"),
        "--feature-gates=HealthinessCheck=true".to_owned(),
        format!("--tls-cert-file={}", serving.certificate.display()),
        format!("--tls-private-key-file={}", serving.key.display()),
        "--shutdown-delay-duration=0s".to_owned(), // nobody has to learn that it is going
        "--drain-timeout=3s".to_owned(),
    ]
}
